"""Checks the copies of linked records in events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial

import bson

from schemas.kind import Document, Kind
from schemas.kinds.event import EVENT
from schemas.kinds.event_representation import LINKED, copy_of
from service.doctor.evidence import last_fact
from service.doctor.findings import Finding, RecordCheck
from service.doctor.scope import Scope
from service.doctor.values import is_number

FULL_BYTES = 14_000_000
"""An event that would be larger than this may have copies without descriptions."""
Records = dict[tuple[str, int], Document]


async def find(scope: Scope, kind: Kind, records: Sequence[Document]) -> list[Finding]:
    linked = await _linked(scope, records)
    found = []
    for event in records:
        for field in LINKED:
            found += _wrong_list(event, field, linked) or _wrong_links(event, field, linked)
            found += [
                finding
                for copy in copies_in(event, field).values()
                if (finding := _wrong_copy(scope, event, field, copy, linked))
            ]
    return found


def copies_in(event: Document, field: str) -> dict[int, Document]:
    """The copies in a field, each once."""
    once: dict[int, Document] = {}
    for copy in event[field] if isinstance(event.get(field), list) else ():
        if isinstance(copy, dict) and is_number(copy.get("_id")):
            once.setdefault(copy["_id"], copy)
    return once


async def _linked(scope: Scope, events: Iterable[Document]) -> Records:
    """The records that these events link to, or have linked to at their last change."""
    ids: defaultdict[str, set[int]] = defaultdict(set)
    for event in events:
        for field in LINKED:
            ids[field] |= copies_in(event, field).keys()
            ids[field] |= {copy["_id"] for copy in last_fact(event, field) or ()}
    return {
        (field, row["_id"]): row | scope.pending.get((LINKED[field].plural, row["_id"]), {})
        for field, wanted in ids.items()
        async for row in scope.collection(LINKED[field].plural).find({"_id": {"$in": list(wanted)}})
    }


def _wrong_links(event: Document, field: str, linked: Records) -> list[Finding]:
    """Copies that were added or removed without a change of the event: every change of links tells them."""
    known, stored = last_fact(event, field), copies_in(event, field)
    if known is None or not isinstance(event.get(field), list):
        return []
    told = [copy["_id"] for copy in known if (field, copy["_id"]) in linked]
    added = [id for id in stored if id not in told and (field, id) in linked]
    missing = [id for id in told if id not in stored]
    if not added and not missing:
        return []
    name = LINKED[field].name
    problem = ", ".join(
        [f"the copy of {name} {id} is missing" for id in missing]
        + [f"it has a copy of {name} {id} that no change has added" for id in added]
    )
    right = [stored.get(id) or copy_of(LINKED[field], linked[field, id]) for id in told]
    return [Finding(f"event {event['_id']}", problem, (field, "links"), event["_id"], {field: right})]


def _wrong_list(event: Document, field: str, linked: Records) -> list[Finding]:
    """What is wrong with the list of copies itself."""
    stored, subject, id = event.get(field), f"event {event['_id']}", event["_id"]
    if not isinstance(stored, list):
        known = last_fact(event, field)
        again = [
            copy_of(LINKED[field], linked[field, copy["_id"]])
            for copy in known or ()
            if (field, copy["_id"]) in linked
        ]
        lost = "" if known is not None else " and cannot be known; they are set to none"
        problem = f"its links in {field} are {'wrong' if field in event else 'missing'}{lost}"
        return [Finding(subject, problem, field, id, {field: again})]
    once = list(copies_in(event, field).values())
    if len(once) == len(stored):
        return []
    problem = f"{len(stored) - len(once)} of the copies in {field} are there twice or are no copies"
    return [Finding(subject, problem, field, id, {field: once})]


def _wrong_copy(scope: Scope, event: Document, field: str, copy: Document, linked: Records) -> Finding | None:
    kind, id = LINKED[field], copy["_id"]
    record, name = linked.get((field, id)), f"the copy of {LINKED[field].name} {id}"
    if record is None:
        problem = f"{name} is of a {kind.name} that does not exist"
    elif not (other := _differences(event, copy, copy_of(kind, record))):
        return None
    elif copy.get("version") != record["version"]:
        versions = f"version {copy.get('version')!r}, the {kind.name} has {record['version']}"
        problem = f"{name} is outdated ({versions})"
    else:
        problem = f"{name} differs from the {kind.name} in {', '.join(other)}"
    repair = partial(_update, scope, kind, field, event["_id"], copy, record)
    aspect = (field, id, repr(copy.get("version")))
    return Finding(
        f"event {event['_id']}", problem, aspect, event["_id"], repair=repair, fanout_of=f"{kind.name}:{id}"
    )


def _differences(event: Document, copy: Document, right: Document) -> list[str]:
    other = [name for name in right.keys() | copy.keys() if copy.get(name) != right.get(name)]
    other += [name for name in right.keys() ^ copy.keys() if name not in other]
    if other == ["description"] and copy.get("description") is None:
        size = len(bson.encode(event)) + len(str(right["description"]).encode())
        return other if size < FULL_BYTES else []
    return sorted(other)


async def _update(
    scope: Scope, kind: Kind, field: str, event: int, copy: Document, record: Document | None
) -> None:
    version = copy.get("version")
    if record and not (is_number(version) and version < record["version"]):
        # Only copies with a lower version are replaced.
        query = {"_id": event, field: {"$elemMatch": {"_id": copy["_id"], "version": version}}}
        change = {"$set": {f"{field}.$[copy].version": 0}}
        filters = [{"copy._id": copy["_id"]}]
        await scope.database[EVENT.plural].update_one(query, change, array_filters=filters)
    await scope.fanout.update_copies(kind, copy["_id"], [event])


COPIES = RecordCheck(
    "copies",
    "the copy of a linked record in an event is outdated, differs, is there twice, or its record does not "
    "exist: updated, or removed",
    find,
    lambda kind: bool(kind.links),
)
