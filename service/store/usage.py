"""How much venues, organizers and terms are used: counts and last ends, kept beside each record.

Counters are changed one by one, outside any transaction, so that a popular term never makes writers wait for
each other. A debt that is noted before an event is written tells what must be counted if its process dies.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pymongo import UpdateOne

from schemas.event import EVENT
from schemas.event_view import LINKED, is_locked
from schemas.kind import Kind
from service.store.batches import Batch
from service.store.client import Database
from service.store.debts import UNWRITTEN, Debt, Debts, State, Use, UseChanges
from service.store.lookups import Lookup
from service.store.visibility import UNLOCKED

PUBLIC = {"status": "publish", **UNLOCKED}
LIVE = {"status": {"$ne": "trash"}}
UNUSED = {"publish": 0, "live": 0, "publish_end": None, "live_end": None, "rev": 0}


def uses(event: Mapping[str, Any] | None) -> dict[Use, State]:
    """(field, id) of what an event links to -> whether it counts as published, as live, and its end.
    The links of a protected event are not for the public to know: they count as live only."""
    if event is None:
        return {}
    is_public = event["status"] == "publish" and not is_locked(event)
    state = (is_public, event["status"] != "trash", event["end_utc"])
    return {(field, copy["_id"]): state for field in LINKED for copy in event.get(field, ())}


def changed_uses(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> UseChanges:
    nothing: State = (False, False, None)
    before, after = uses(old), uses(new)
    pairs = {use: (before.get(use, nothing), after.get(use, nothing)) for use in before | after}
    return {use: (was, now) for use, (was, now) in pairs.items() if was != now}


def has_end(use: Use) -> bool:
    """Whether the last end of the events is kept: venues and organizers can be asked for those to come."""
    return LINKED[use[0]].is_post


def was_cut(was: State, now: State) -> bool:
    """Whether a last end may have come from what is no longer so."""
    if not was[1]:
        return False
    return now[0] < was[0] or now[1] < was[1] or now[2] is None or was[2] is None or now[2] < was[2]


@dataclass
class Step:
    """How the counters of one record change."""

    published: int = 0
    live: int = 0
    ends: dict[str, datetime] = field(default_factory=dict)

    def add(self, was: State, now: State, *, ends: bool) -> None:
        self.published += now[0] - was[0]
        self.live += now[1] - was[1]
        for is_so, name in ((now[1], "events.live_end"), (now[0], "events.publish_end")):
            if ends and is_so and now[2]:
                self.ends[name] = max(self.ends.get(name, now[2]), now[2])

    def change(self) -> dict[str, Any]:
        counted = {"events.publish": self.published, "events.live": self.live, "events.rev": 1}
        return {"$inc": counted} | ({"$max": self.ends} if self.ends else {})


def counter_updates(writes: Iterable[UseChanges]) -> dict[str, list[UpdateOne]]:
    """Field of an event -> what to count in the records that it links to. A popular record is written once
    for several writes."""
    steps: defaultdict[Use, Step] = defaultdict(Step)
    for changes in writes:
        for use, (was, now) in changes.items():
            steps[use].add(was, now, ends=has_end(use))
    updates: defaultdict[str, list[UpdateOne]] = defaultdict(list)
    for (name, id), step in steps.items():
        updates[name].append(UpdateOne({"_id": id}, step.change()))
    return updates


class Usage:
    """The counters."""

    def __init__(self, database: Database, versions: Lookup) -> None:
        self._database = database
        self._versions = versions
        self.debts = Debts(database)
        self._counting = Batch[Debt, None](self._count_all)

    async def count(self, debt: Debt) -> None:
        """Brings the counters up to one write of an event."""
        if debt.changes:
            await self._counting.ask(debt)

    async def _count_all(self, debts: Sequence[Debt]) -> dict[Debt, None]:
        updates = counter_updates(debt.changes for debt in debts)
        await asyncio.gather(
            *(self._collection(field).bulk_write(many, ordered=False) for field, many in updates.items())
        )
        return {}

    async def is_last(self, debt: Debt) -> bool:
        """Whether the event is still as it was written."""
        event = await self._versions.one(EVENT.plural, debt.event) if debt.changes else None
        return event is not None and event["version"] == debt.version

    async def settle(self, debt: Debt, *, is_last: bool) -> None:
        """After counting: finds last ends afresh where that is needed, and crosses the debt off. An event
        that was written again meanwhile may have been counted before this."""
        ends = filter(has_end, debt.changes)
        unsure = [use for use in ends if not is_last or was_cut(*debt.changes[use])]
        await asyncio.gather(*(self._last_end(*use) for use in unsure))
        if not await self.debts.cross_off(debt):
            for use in debt.changes:
                await self._recount_until_still(*use, datetime.now(UTC).replace(tzinfo=None))

    def _collection(self, field: str) -> Any:
        return self._database[LINKED[field].plural]

    async def _last_end(self, field: str, id: int) -> None:
        """The last end of the events that link to a record, found afresh; again if one was counted since."""
        while record := await self._collection(field).find_one({"_id": id}, {"events.rev": 1}):
            ends = {}
            for name, state in (("publish", PUBLIC), ("live", LIVE)):
                last = await self._database["events"].find_one(
                    {f"{field}._id": id, **state}, {"end_utc": 1}, sort=[("end_utc", -1)]
                )
                ends[f"events.{name}_end"] = last and last["end_utc"]
            unchanged = {"_id": id, "events.rev": record["events"]["rev"]}
            if (await self._collection(field).update_one(unchanged, {"$set": ends})).matched_count:
                return

    async def recount(self, field: str, id: int, now: datetime) -> bool:
        """Counts the events of one record afresh. False: writes were under way, ask again."""
        collection, events = self._collection(field), self._database["events"]
        record = await collection.find_one({"_id": id}, {"events": 1})
        if record is None:
            return True
        published = await events.count_documents({f"{field}._id": id, **PUBLIC})
        live = await events.count_documents({f"{field}._id": id, **LIVE})
        if await self.debts.is_open(f"{field}:{id}", now):
            return False
        counted = {"events.publish": published, "events.live": live}
        result = await collection.update_one(
            {"_id": id, "events.rev": record["events"]["rev"]}, {"$set": counted, "$inc": {"events.rev": 1}}
        )
        if LINKED[field].is_post:
            await self._last_end(field, id)
        return bool(result.matched_count)

    async def settle_debts(self, now: datetime, refresh: Callable[[Any], Awaitable[bool]]) -> None:
        """Finds the notes of processes that died, and makes good on them."""
        shown = {"version": 1} | {f"{field}.{name}": 1 for field in LINKED for name in ("_id", "version")}
        async for note in self.debts.left(now):
            event = await self._database["events"].find_one({"_id": note["event"]}, shown)
            if event is None or event["version"] < note["version"]:
                if note["at"] < now - UNWRITTEN:
                    await self.debts.drop(note)
            elif await self.debts.take_up(note):
                await refresh(event)
                uses = [ref.partition(":") for ref in note["refs"]]
                if all([await self._recount_until_still(field, int(id), now) for field, _, id in uses]):
                    await self.debts.drop(note)

    async def _recount_until_still(self, field: str, id: int, now: datetime) -> bool:
        for _ in range(100):
            if await self.recount(field, id, now):
                return True
            await asyncio.sleep(0.05)
        return False


def unused(kind: Kind) -> dict[str, Any]:
    """What a new record says of its use."""
    return {"events": dict(UNUSED)} if kind.copied else {}
