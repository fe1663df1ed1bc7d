"""Usage counters: applies the whole outbox of counter changes at once.

The changes are first combined into a plan, which is stored. There is one plan at a time, and any process
that finds one carries it out. Each step updates a record only if it has the number of an earlier plan, and
sets the number of this one: so it is applied exactly once, however many processes try and whichever crash.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId
from pymongo import UpdateOne

from schemas.event import EVENT
from schemas.event_representation import LINKED
from service.store.debts import Debt, Debts, Note, Plan, Truth, Use
from service.store.links.fanout import Fanout, in_background
from service.store.links.usage import Step, has_end, was_cut
from service.store.lists.query import UNLOCKED
from service.store.mongo.client import Database
from service.store.mongo.coalescing import Batcher

MANY = 500
"""Pending entries at which a process applies the outbox without waiting for background maintenance."""
LARGEST = 20_000
"""Maximum number of counter changes in one plan: MongoDB limits a document to 16 MiB."""
UNWRITTEN = timedelta(hours=1)
"""An outbox entry without its event is kept this long: the write may still be in flight."""
PUBLIC = {"status": "publish", **UNLOCKED}
LIVE = {"status": {"$ne": "trash"}}
EVENTS = {"version": 1, "debt": 1} | {f"{name}.{part}": 1 for name in LINKED for part in ("_id", "version")}
Rows = Mapping[Any, dict[str, Any]]


def marks_of(notes: Iterable[Note]) -> set[ObjectId | None]:
    return {debt.mark for note in notes for debt in note.debts}


class Counts:
    """Keeps the usage counters of linked records up to date with the events."""

    def __init__(self, database: Database, copies: Fanout) -> None:
        self._database = database
        self._copies = copies
        self.debts = Debts(database)
        self._batch = Batcher[None, None](self._count)
        self.tasks: set[asyncio.Task[None]] = set()

    def keep_up(self) -> None:
        """Apply the outbox in the background once this process has added many entries."""
        if self.debts.unseen >= MANY:
            in_background(self.tasks, asyncio.ensure_future(self.catch_up()))

    async def catch_up(self) -> None:
        """Return when every write acknowledged before the call is counted."""
        await self._batch.load(None)

    async def maintain(self, now: datetime) -> None:
        await self.catch_up()
        await self.debts.drop(now - UNWRITTEN)

    async def _count(self, _: Sequence[None]) -> dict[None, None]:
        number, left, notes = await self.debts.state()
        asked = marks_of(notes)
        while left or asked & marks_of(notes):
            if left:
                await self._carry_out(number, left)
            elif (plan := await self._planned(notes)) is None:
                break
            elif begun := await self.debts.begin(number, plan):
                await self._carry_out(begun, plan)
                if not plan["is_part"]:
                    break
            number, left, notes = await self.debts.state()
        return {}

    async def _carry_out(self, number: int, plan: Plan) -> None:
        updates: defaultdict[str, list[UpdateOne]] = defaultdict(list)
        for field, id, *step in plan["steps"]:
            earlier = {"_id": id, "events.plan": {"$not": {"$gte": number}}}
            updates[field].append(UpdateOne(earlier, Step(*step).change(number)))
        await asyncio.gather(
            *(self._collection(field).bulk_write(many, ordered=False) for field, many in updates.items())
        )
        await self.debts.take(plan["notes"], plan["marks"])
        await self.debts.end(number)

    def _collection(self, field: str) -> Any:
        return self._database[LINKED[field].plural]

    async def _planned(self, noted: Sequence[Note]) -> Plan | None:
        """The plan for the outbox; None if there is nothing to do."""
        notes, events, is_part = await self._understood(noted)
        debts = [debt for note in notes for debt in note.debts]
        truth = Truth(debts, events)
        settled = [debt.mark for debt in debts if debt.mark not in truth.open]
        if not settled:
            return None
        # A record may have changed while an event was linked to it, and the event's writer may have crashed.
        await self._copies.refresh([events[id] for id in {debt.event for debt in truth.made}])
        steps = await self._steps(truth.made)
        whole = [note for note in notes if truth.open.isdisjoint(marks_of([note]))]
        gone = marks_of(whole)
        return {
            "steps": [[*use, *astuple(step)] for use, step in steps.items()],
            "notes": [note.id for note in whole],
            "marks": [mark for mark in settled if mark not in gone],
            "is_part": is_part,
        }

    async def _understood(self, notes: Sequence[Note]) -> tuple[Sequence[Note], Rows, bool]:
        """The outbox, with every uncounted entry whose mark one of the events has; the events it is about, as
        many as one plan can hold; and whether there are more."""
        ids, size = set[int](), 0
        for debt in (debt for note in notes for debt in note.debts):
            size += len(debt.changes)
            ids |= {debt.event} if size < LARGEST or not ids else set()
        events = await self._events(ids) if ids else {}
        if not {event.get("debt") for event in events.values()} <= marks_of(notes):
            _, _, notes = await self.debts.state()  # reread: the latest writes have newer entries
        return notes, events, size >= LARGEST

    async def _events(self, ids: Iterable[int]) -> Rows:
        rows = await self._database[EVENT.plural].find({"_id": {"$in": list(ids)}}, EVENTS).to_list(None)
        return {row["_id"]: row for row in rows}

    async def _steps(self, debts: Iterable[Debt]) -> dict[Use, Step]:
        steps: defaultdict[Use, Step] = defaultdict(Step)
        unsure: set[Use] = set()
        for use, (was, now) in (change for debt in debts for change in debt.changes.items()):
            steps[use].add(was, now, ends=has_end(use))
            if has_end(use) and was_cut(was, now):
                unsure.add(use)
        for use in unsure:
            steps[use].found = await self._last_ends(*use)
        return steps

    async def _last_ends(self, field: str, id: int) -> list[datetime | None]:
        """The latest end of public events, and of all events not in the trash, that link to a record."""
        events = self._database[EVENT.plural]
        asked = [{f"{field}._id": id, **state} for state in (PUBLIC, LIVE)]
        last = [await events.find_one(one, {"end_utc": 1}, sort=[("end_utc", -1)]) for one in asked]
        return [event["end_utc"] if event else None for event in last]
