"""How much venues, organizers and terms are used: counts and last ends, kept beside each record.

An event's write carries a note of what it owes (`owes`). The counters are then changed one by one, outside
any transaction, so that a popular term never makes writers wait for each other. A process that dies in
between leaves the note; `settle_debts` finds it and counts afresh.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pymongo import UpdateOne

from schemas.event_view import LINKED, is_locked
from schemas.kind import Kind
from service.store.batches import Batch
from service.store.client import Database
from service.store.visibility import UNLOCKED

PUBLIC = {"status": "publish", **UNLOCKED}
LIVE = {"status": {"$ne": "trash"}}
UNUSED = {"publish": 0, "live": 0, "publish_end": None, "live_end": None, "rev": 0}
GRACE = timedelta(seconds=10)
"""A note older than this belongs to a process that died."""
Use = tuple[str, int]
State = tuple[bool, bool, datetime | None]
Uses = Mapping[Use, tuple[State, State]]
Write = tuple[int, int]
"""The id of an event, and the version that it was given."""


def uses(event: Mapping[str, Any] | None) -> dict[Use, State]:
    """(field, id) of what an event links to -> whether it counts as published, as live, and its end.
    The links of a protected event are not for the public to know: they count as live only."""
    if event is None:
        return {}
    is_public = event["status"] == "publish" and not is_locked(event)
    state = (is_public, event["status"] != "trash", event["end_utc"])
    return {(field, copy["_id"]): state for field in LINKED for copy in event.get(field, ())}


def changed_uses(
    old: Mapping[str, Any] | None, new: Mapping[str, Any] | None
) -> dict[Use, tuple[State, State]]:
    nothing: State = (False, False, None)
    before, after = uses(old), uses(new)
    pairs = {use: (before.get(use, nothing), after.get(use, nothing)) for use in before | after}
    return {use: (was, now) for use, (was, now) in pairs.items() if was != now}


def shrinks(was: State, now: State) -> bool:
    """Whether a last end may have come from what is no longer so."""
    return now[0] < was[0] or now[1] < was[1] or now[2] is None or was[2] is None or now[2] < was[2]


def note(changes: Mapping[Use, Any], version: int, now: datetime) -> dict[str, Any] | None:
    """What an event's document says until the counters of its links are right."""
    refs = [f"{field}:{id}" for field, id in changes]
    return {"version": version, "at": now, "refs": refs} if refs else None


def taking(event: int, version: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The update that takes a note away: of an event that was not written since, nor taken up by a sweep."""
    mine = {"version": version}
    unseen = {"_id": event, **mine, "owes": {"$elemMatch": mine | {"late": {"$ne": True}}}}
    return unseen, {"$pull": {"owes": mine}}


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


class Usage:
    """The counters."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: dict[Write, Uses] = {}
        self._batch = Batch[Write, None](self._apply)

    async def apply(self, event: int, version: int, changes: Uses) -> None:
        """Brings the counters up to one write of an event, then takes its note away."""
        if changes:
            self._waiting[event, version] = changes
            await self._batch.ask((event, version))

    async def _apply(self, writes: Sequence[Write]) -> dict[Write, None]:
        """Counts what several writes have changed: a popular record is written once for all of them."""
        told = {write: self._waiting.pop(write) for write in writes}
        both = [(use, was, now) for changes in told.values() for use, (was, now) in changes.items()]
        steps: defaultdict[Use, Step] = defaultdict(Step)
        for use, was, now in both:
            steps[use].add(was, now, ends=LINKED[use[0]].is_post)
        fields = {field for field, _ in steps}
        await asyncio.gather(*(self._count(field, steps) for field in fields))
        shortened = {use for use, was, now in both if LINKED[use[0]].is_post and was[1] and shrinks(was, now)}
        await asyncio.gather(*(self._last_end(*use) for use in shortened))
        await self._all_done(told)
        return {}

    async def _all_done(self, told: Mapping[Write, Uses]) -> None:
        """Takes the notes of several writes away; where one was not as it was left, looks at each."""
        events = self._database["events"]
        taken = await events.bulk_write([UpdateOne(*taking(*write)) for write in told], ordered=False)
        if taken.matched_count == len(told):
            return
        ids = [event for event, _ in told]
        rows = await events.find({"_id": {"$in": ids}, "owes": {"$ne": []}}, {"owes": 1}).to_list(None)
        left = {(row["_id"], note["version"]) for row in rows for note in row.get("owes", ())}
        gone = told.keys() - left
        suspect = told if len(gone) > taken.matched_count else told.keys() & left
        for write in suspect:
            await self._done(*write, told[write])

    async def _done(self, event: int, version: int, changes: Mapping[Use, Any]) -> None:
        """Takes the note away. An event that was written again meanwhile may have been counted before this:
        then the last ends are found afresh. A note that a sweep took up means that the sweep counted too."""
        events, mine = self._database["events"], {"version": version}
        if (await events.update_one(*taking(event, version))).matched_count:
            return
        await asyncio.gather(*(self._last_end(*use) for use in changes if LINKED[use[0]].is_post))
        before = await events.find_one_and_update({"_id": event}, {"$pull": {"owes": mine}}, {"owes": 1})
        notes = (before or {}).get("owes", [])
        if not any(note["version"] == version and not note.get("late") for note in notes):
            now = datetime.now(UTC).replace(tzinfo=None)
            for field, id in changes:
                await self._recount_until_still(field, id, now)

    async def _count(self, field: str, steps: Mapping[Use, Step]) -> None:
        changes = [
            UpdateOne({"_id": id}, step.change()) for (name, id), step in steps.items() if name == field
        ]
        await self._collection(field).bulk_write(changes, ordered=False)

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
        fresh = {"refs": f"{field}:{id}", "at": {"$gte": now - GRACE}}
        if await events.find_one({"owes.refs": f"{field}:{id}", "owes": {"$elemMatch": fresh}}, {"_id": 1}):
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
        events = self._database["events"]
        shown = {"owes": 1} | {f"{field}.{name}": 1 for field in LINKED for name in ("_id", "version")}
        async for event in events.find({"owes.refs": {"$exists": True}}, shown):
            for debt in (debt for debt in event["owes"] if debt["at"] < now - GRACE):
                mine = {"version": debt["version"]}
                taken = {"_id": event["_id"], "owes": {"$elemMatch": mine}}
                if not (await events.update_one(taken, {"$set": {"owes.$.late": True}})).matched_count:
                    continue
                await refresh(event)
                uses = [ref.partition(":") for ref in debt["refs"]]
                if all([await self._recount_until_still(field, int(id), now) for field, _, id in uses]):
                    await events.update_one({"_id": event["_id"]}, {"$pull": {"owes": mine}})

    async def _recount_until_still(self, field: str, id: int, now: datetime) -> bool:
        for _ in range(100):
            if await self.recount(field, id, now):
                return True
            await asyncio.sleep(0.05)
        return False


def unused(kind: Kind) -> dict[str, Any]:
    """What a new record says of its use."""
    return {"events": dict(UNUSED)} if kind.copied else {}
