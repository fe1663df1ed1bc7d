"""How much venues, organizers and terms are used: counts and last ends, kept beside each record.

An event's write carries a note of what it owes (`owes`). The counters are then changed one by one, outside
any transaction, so that a popular term never makes writers wait for each other. A process that dies in
between leaves the note; `settle_debts` finds it and counts afresh.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from schemas.event_view import LINKED, is_locked
from schemas.kind import Kind
from service.store.client import Database
from service.store.visibility import UNLOCKED

PUBLIC = {"status": "publish", **UNLOCKED}
LIVE = {"status": {"$ne": "trash"}}
UNUSED = {"publish": 0, "live": 0, "publish_end": None, "live_end": None, "rev": 0}
GRACE = timedelta(seconds=10)
"""A note older than this belongs to a process that died."""
Use = tuple[str, int]
State = tuple[bool, bool, datetime | None]


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


class Usage:
    """The counters."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def apply(self, event: int, version: int, changes: Mapping[Use, tuple[State, State]]) -> None:
        """Brings the counters up to one write of an event, then takes its note away."""
        if not changes:
            return
        steps: defaultdict[tuple[str, int, int], list[int]] = defaultdict(list)
        shortened = []
        for (field, id), (was, now) in changes.items():
            steps[field, now[0] - was[0], now[1] - was[1]].append(id)
            if LINKED[field].is_post and was[1] and shrinks(was, now):
                shortened.append((field, id))
        latest = {use: now for use, (_, now) in changes.items() if LINKED[use[0]].is_post}
        await asyncio.gather(*(self._step(key, ids, latest) for key, ids in steps.items()))
        await asyncio.gather(*(self._last_end(field, id) for field, id in shortened))
        await self._done(event, version, changes)

    async def _done(self, event: int, version: int, changes: Mapping[Use, Any]) -> None:
        """Takes the note away. An event that was written again meanwhile may have been counted before this:
        then the last ends are found afresh. A note that a sweep took up means that the sweep counted too."""
        events, mine = self._database["events"], {"version": version}
        unseen = {"_id": event, **mine, "owes": {"$elemMatch": mine | {"late": {"$ne": True}}}}
        if (await events.update_one(unseen, {"$pull": {"owes": mine}})).matched_count:
            return
        await asyncio.gather(*(self._last_end(*use) for use in changes if LINKED[use[0]].is_post))
        before = await events.find_one_and_update({"_id": event}, {"$pull": {"owes": mine}}, {"owes": 1})
        notes = (before or {}).get("owes", [])
        if not any(note["version"] == version and not note.get("late") for note in notes):
            now = datetime.now(UTC).replace(tzinfo=None)
            for field, id in changes:
                await self._recount_until_still(field, id, now)

    async def _step(self, key: tuple[str, int, int], ids: list[int], latest: Mapping[Use, State]) -> None:
        field, published, live = key
        change: dict[str, Any] = {"$inc": {"events.publish": published, "events.live": live, "events.rev": 1}}
        state = latest.get((field, ids[0]))
        if state and state[1]:
            ends = {"events.live_end": state[2]} | ({"events.publish_end": state[2]} if state[0] else {})
            change["$max"] = ends
        await self._collection(field).update_many({"_id": {"$in": ids}}, change)

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
