"""Looks at a whole database and tells what in it does not agree with the rest."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import pytest
from bson import Timestamp
from pymongo.errors import OperationFailure

from schemas import KINDS, Kind
from schemas.event_representation import LINKED
from schemas.kind import texts
from schemas.link_refs import name_key
from schemas.text_normalization import fold, tokens, without_markup
from schemas.zones import parse_zone
from service.store import Store
from service.store.change_feed import HISTORY_LOST
from service.store.links.fanout import copy_of

DEADLINE = 60.0
LONG_AGO = datetime(2001, 1, 1)
Rows = dict[int, dict[str, Any]]


async def differences(store: Store) -> list[str]:
    """Everything that is stored twice or computed, compared with what it should be."""
    database = store.database
    await store.log.update()
    found = {kind.plural: await database[kind.plural].find().to_list(None) for kind in KINDS}
    rows: dict[str, Rows] = {plural: {row["_id"]: row for row in many} for plural, many in found.items()}
    numbers = {row["_id"]: row["n"] async for row in database["words"].find({}, {"n": 1})}
    return [
        *[f"left: {job}" async for job in database["fanout_jobs"].find()],
        *_shared_names(rows),
        *_wrong_copies(rows),
        *_wrong_counts(rows),
        *_wrong_tree(rows["categories"]),
        *(f"tag {id}: is in a tree" for id, tag in rows["tags"].items() if tag["parent"] or tag["ancestors"]),
        *_wrong_terms(rows),
        *_wrong_times(rows["events"]),
        *(wrong for kind in KINDS for wrong in _wrong_words(kind, rows[kind.plural], numbers)),
        *(["two words share a number"] if len(set(numbers.values())) < len(numbers) else []),
    ]


async def agrees(store: Store, seconds: float = 10.0) -> None:
    """Waits until there is no difference. Chores that refused requests have left are taken up as if they
    were old."""
    found: list[str] = []

    async def clean() -> bool:
        await store.database["fanout_jobs"].update_many({}, {"$set": {"at": LONG_AGO}})
        await store.maintain()
        found[:] = await differences(store)
        return not found

    try:
        await until(clean, seconds)
    except TimeoutError:
        raise AssertionError("\n".join(found)) from None


async def sweep_later(store: Store) -> None:
    """The sweep of a process long after everything that is still written down; nothing else may run."""
    await store.database["fanout_jobs"].update_many({}, {"$set": {"at": LONG_AGO}})
    await store.maintain()


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = DEADLINE) -> None:
    give_up = time.monotonic() + seconds
    while not await condition():
        if time.monotonic() > give_up:
            raise TimeoutError("it did not come true in time")
        await asyncio.sleep(0.1)


def _shared_names(rows: Mapping[str, Rows]) -> Iterable[str]:
    for plural, records in rows.items():
        for slug, times in Counter(record["slug"] for record in records.values()).items():
            if times > 1 or not slug:
                yield f"{plural}: slug {slug!r} {times} times"
    for space in ("post", "term"):
        ids = Counter(id for kind in KINDS if kind.id_space == space for id in rows[kind.plural])
        yield from (f"{space} {id}: {times} times" for id, times in ids.items() if times > 1)


def _wrong_copies(rows: Mapping[str, Rows]) -> Iterable[str]:
    for id, event in rows["events"].items():
        for field, kind in LINKED.items():
            copies = event.get(field, [])
            if len({copy["_id"] for copy in copies}) < len(copies):
                yield f"event {id}: the same {kind.name} twice"
            for copy in copies:
                record = rows[kind.plural].get(copy["_id"])
                if record is None:
                    yield f"event {id}: {kind.name} {copy['_id']} is not there"
                elif copy != (right := copy_of(kind, record)):
                    wrong = {
                        name: (copy.get(name), new) for name, new in right.items() if copy.get(name) != new
                    }
                    yield f"event {id}: {kind.name} {copy['_id']} as it was: {wrong}"


def _wrong_counts(rows: Mapping[str, Rows]) -> Iterable[str]:
    public: defaultdict[tuple[str, int], list[Any]] = defaultdict(list)
    live: defaultdict[tuple[str, int], list[Any]] = defaultdict(list)
    for event in rows["events"].values():
        for field in LINKED:
            for copy in event.get(field, []):
                if event["status"] == "publish" and not event["password"]:
                    public[field, copy["_id"]].append(event["end_utc"])
                if event["status"] != "trash":
                    live[field, copy["_id"]].append(event["end_utc"])
    for field, kind in LINKED.items():
        for id, record in rows[kind.plural].items():
            ends, live_ends = public[field, id], live[field, id]
            right: dict[str, Any] = {"publish": len(ends)}
            if kind.is_post:
                right |= {"publish_end": max(ends, default=None), "live_end": max(live_ends, default=None)}
            stored = {name: record["events"][name] for name in right}
            if stored != right:
                yield f"{kind.name} {id}: counted {stored}, should be {right}"


def _wrong_tree(categories: Rows) -> Iterable[str]:
    for id, category in categories.items():
        above: list[int] = []
        parent = category["parent"]
        while parent and parent not in above:
            if parent not in categories:
                yield f"category {id}: {parent} above it is not there"
                break
            above.insert(0, parent)
            parent = categories[parent]["parent"]
        if id in above:
            yield f"category {id}: is its own ancestor"
        elif category["ancestors"] != above:
            yield f"category {id}: ancestors {category['ancestors']}, should be {above}"


def _wrong_terms(rows: Mapping[str, Rows]) -> Iterable[str]:
    """A name may be claimed by the term that has it; where a parent is gone, its claims do no harm."""
    for plural in ("categories", "tags"):
        for id, term in rows[plural].items():
            key = name_key(term["name"])
            if term["key"] != key:
                yield f"{plural} {id}: key {term['key']!r}, should be {key!r}"
            parent = int((claim := term.get("claim", "0:")).partition(":")[0])
            if "claim" in term and parent in (0, *rows[plural]) and claim != f"{term['parent']}:{key}":
                yield f"{plural} {id}: claims {claim!r}, should claim {term['parent']}:{key}"


def _wrong_times(events: Rows) -> Iterable[str]:
    for id, event in events.items():
        zone = parse_zone(event["timezone"])
        for name in ("start", "end"):
            # Not the other way round: clocks that are set back show a time twice, and either may be meant.
            if zone.to_wall(event[f"{name}_utc"]) != event[name]:
                yield f"event {id}: {name} {event[name]} in {zone.name} is not {event[f'{name}_utc']}"
        if event["end_utc"] < event["start_utc"]:
            yield f"event {id}: ends before it starts"


def _wrong_words(kind: Kind, records: Rows, numbers: Mapping[str, int]) -> Iterable[str]:
    for id, record in records.items():
        markup = ("description", "excerpt")
        parts = [fold(without_markup(text) if name in markup else text) for name, text in texts(kind, record)]
        folded = "\n".join(parts)
        if record["text"] != folded:
            yield f"{kind.name} {id}: text {record['text']!r}, should be {folded!r}"
        if record["tok"] != sorted(numbers.get(word, -1) for word in tokens(folded)):
            yield f"{kind.name} {id}: the numbers of its words are wrong"
        if record["sort"] != fold(record[kind.name_field])[:100]:
            yield f"{kind.name} {id}: sorted by {record['sort']!r}"


async def lose_changes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oplog does not reach back to the checkpoint: MongoDB refuses to open the change stream there."""

    def refuses(*arguments: Any, start_at_operation_time: Timestamp, **options: Any) -> Any:
        monkeypatch.undo()
        raise OperationFailure("too old", HISTORY_LOST)

    await store.feed.close()
    monkeypatch.setattr(store.feed._database, "watch", refuses)
    await store.feed.catch_up()
    assert store.feed.has_lost_changes
