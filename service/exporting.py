"""`kalends export`: writes all records, as NDJSON that `kalends import` reads or as iCalendar."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterable

import orjson

from config import Settings
from schemas import EVENT, KINDS
from schemas.caller import PUBLIC, Caller, Role
from schemas.formats import Feed
from schemas.formats.ical import ICALENDAR
from schemas.kind import Document, Kind, RenderContext, reader_of
from schemas.kinds.event_representation import LINKED, is_locked, without_protected_fields
from schemas.kinds.parents import parent_field
from service.database import opened
from service.imports.imported import ImportedRecords
from service.imports.ndjson.export_source import HEADER, INSTANCE, linked_fields
from service.imports.site.values import TIMES, unambiguous_time
from service.progress import Progress
from service.store import Store

BATCH = 200
ORDER = sorted(KINDS, key=lambda kind: bool(kind.links))
"""Linked records come before those that link to them."""
OPERATOR = Caller(role=Role.ADMIN, bypasses_passwords=True)
NOT_WRITTEN = {"date", "password", "new_password"}


async def export_records(settings: Settings, format: str) -> int:
    """Write the records to standard output."""
    async with opened(settings) as (store, location):
        print(f"Exporting {location}", file=sys.stderr)
        progress, count = Progress(sys.stderr, 0), 0
        async for written in lines(store) if format == "ndjson" else calendar(store):
            sys.stdout.buffer.write(written)
            count += 1
            progress.show(count, count)
        progress.clear()
    return 0


async def lines(store: Store) -> AsyncIterator[bytes]:
    """A line about the database, then all records."""
    header = {
        HEADER: str(await ImportedRecords(store.database).origin()),
        INSTANCE: str(await store.instance()),
    }
    yield orjson.dumps(header, option=orjson.OPT_APPEND_NEWLINE)
    # The last kind first: what its records link to exists by then.
    scans = {kind.plural: await store.scan_all(kind) for kind in reversed(ORDER)}
    written: dict[str, set[int]] = {kind.plural: set() for kind in ORDER}
    for kind in ORDER:
        async for record in records_of(store, kind, scans[kind.plural].ids):
            for above in [*await missing_parents(store, kind, record, written), record]:
                async for other, linked in missing_links(store, kind, above, written):
                    yield line(store, other, linked, written)
                if above["_id"] not in written[kind.plural]:
                    written[kind.plural].add(above["_id"])
                    yield line(store, kind, above, written)


async def records_of(store: Store, kind: Kind, ids: Iterable[int]) -> AsyncIterator[Document]:
    imported, all_ids = ImportedRecords(store.database), list(ids)
    for at in range(0, len(all_ids), BATCH):
        batch = all_ids[at : at + BATCH]
        keys = await imported.keys_of(kind, batch)
        for record in await store.find_many(kind, batch):
            key = {"import_key": keys[record["_id"]]} if record["_id"] in keys else {}
            yield {**record, **key}


async def missing_parents(
    store: Store, kind: Kind, record: Document, written: dict[str, set[int]]
) -> list[Document]:
    """The record above, those above it and so on, the topmost first, if they have higher ids."""
    above: dict[int, Document] = {}
    while (parent := record.get(parent_field(kind))) and parent not in written[kind.plural]:
        found = [one async for one in records_of(store, kind, [parent])]
        if not found or parent in above:
            break
        above[parent] = record = found[0]
    return list(above.values())[::-1]


async def missing_links(
    store: Store, kind: Kind, record: Document, written: dict[str, set[int]]
) -> AsyncIterator[tuple[Kind, Document]]:
    """Linked records that were created after their kind was written."""
    for field in kind.links:
        target = LINKED[field]
        missing = {copy["_id"] for copy in record.get(field) or ()} - written[target.plural]
        async for linked in records_of(store, target, missing):
            written[target.plural].add(linked["_id"])
            yield target, linked


def line(store: Store, kind: Kind, record: Document, written: dict[str, set[int]]) -> bytes:
    """A record, in the form that `POST` accepts, with its kind and ID, and the IDs of linked records that are
    written: an event may still have copies of deleted ones."""
    shown = kind.represent(kind, record, RenderContext(store.site, OPERATOR))
    accepted = reader_of(kind.slug_update_schema).fields.keys()
    names = accepted - NOT_WRITTEN - linked_fields(kind)
    values = {name: shown[name] for name in shown if name in names}
    values |= {name: unambiguous_time(name, shown) for name in TIMES if name in values}
    if "image" in values:  # also without one: it may have been removed since the last export
        image = values["image"] or {"url": ""}
        values["image"] = image["url"] or image.get("id", "")
    linked = {field: [copy["_id"] for copy in record.get(field) or ()] for field in kind.links}
    if parent_field(kind) in accepted:
        linked[parent_field(kind)] = [record.get(parent_field(kind))]
    known = {field: written[LINKED.get(field, kind).plural] for field in linked}
    links = {field: [id for id in ids if id in known[field]] for field, ids in linked.items()}
    hidden = {name: record[name].hex() for name in ("import_key", "import_hash") if record.get(name)}
    if is_locked(record):
        hidden["password_hash"] = record["password"]
    found = {"kind": kind.plural, "id": record["_id"], **values, **links, **hidden}
    return orjson.dumps(found, option=orjson.OPT_APPEND_NEWLINE)


async def calendar(store: Store) -> AsyncIterator[bytes]:
    """The published events as iCalendar; protected ones without what their passwords protect."""
    scan = await store.scan_all(EVENT)
    context, url = RenderContext(store.site, PUBLIC), f"{store.site.api}/{EVENT.plural}.{ICALENDAR.ending}"
    feed = Feed(EVENT, context, await store.instance(), url, scan.modified, scan.zones)
    yield ICALENDAR.begin(feed)
    async for record in records_of(store, EVENT, scan.ids):
        if record["status"] == "publish":
            shown = without_protected_fields(record, store.site) if is_locked(record) else record
            yield ICALENDAR.item(feed, shown)
    yield ICALENDAR.end
