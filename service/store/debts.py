"""Notes of what is still to be counted: written before an event is.

Nothing is counted by those who write events. Whoever needs a count has what is noted counted first, and a
sweep does it now and then. So a count is exact when it is shown, whoever has died meanwhile, and a popular
venue is written once for hundreds of its events.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bson import ObjectId
from pymongo.errors import DuplicateKeyError
from pymongo.read_concern import ReadConcern

from service.store.batches import Batch
from service.store.client import Database

Use = tuple[str, int]
"""A field of events, and the id of a record that one links to there."""
State = tuple[bool, bool, datetime | None]
"""Whether a use counts as published and as live, and when it ends."""
UseChanges = Mapping[Use, tuple[State, State]]
"""What each use was before a write, and is after it."""
Plan = dict[str, Any]
PLAN = "plan"
AT_ONCE = ReadConcern("snapshot")
"""All that a majority has, as it was at one moment."""
LARGEST = 100
"""Debts in one note: a document of MongoDB ends at 16 MiB."""


@dataclass(frozen=True, eq=False)
class Debt:
    """What one write of an event changes in the counters of what it links to. The event bears its mark, and
    so did the one before it."""

    event: int
    version: int
    changes: UseChanges
    after: ObjectId | None = None
    mark: ObjectId = field(default_factory=ObjectId)

    def noted(self) -> dict[str, Any]:
        uses = [[*use, was, now] for use, (was, now) in self.changes.items()]
        known = {"event": self.event, "version": self.version, "after": self.after, "mark": self.mark}
        return known | {"uses": uses}


def noted_debt(noted: Mapping[str, Any]) -> Debt:
    uses = {(field, id): (_state(was), _state(now)) for field, id, was, now in noted["uses"]}
    return Debt(noted["event"], noted["version"], uses, noted["after"], noted["mark"])


def _state(noted: Sequence[Any]) -> State:
    return (noted[0], noted[1], noted[2])


@dataclass(frozen=True)
class Note:
    """The debts of writes that were made together."""

    id: ObjectId
    debts: Sequence[Debt]

    def document(self) -> dict[str, Any]:
        return {"_id": self.id, "writes": [debt.noted() for debt in self.debts]}


class Debts:
    """The notes of all processes."""

    def __init__(self, database: Database) -> None:
        self._notes = database["debts"]
        self._writing = Batch[Debt, None](self._write)
        self._crossing = Batch[Debt, None](self._cross_off)
        self.unseen = 0
        """Debts that this process has noted since it last looked at all notes."""

    @asynccontextmanager
    async def noted(self, debt: Debt) -> AsyncIterator[None]:
        """Around the write of an event. A note whose event does not come is a note of nothing."""
        if not debt.changes:
            yield
            return
        await self._writing.ask(debt)
        try:
            yield
        except DuplicateKeyError:  # other errors do not tell whether it was written
            await self._crossing.ask(debt)
            raise

    async def _write(self, debts: Sequence[Debt]) -> dict[Debt, None]:
        await self.note(debts)
        return {}

    async def _cross_off(self, debts: Sequence[Debt]) -> dict[Debt, None]:
        await self.take([], [debt.mark for debt in debts])
        return {}

    async def note(self, debts: Iterable[Debt]) -> None:
        """Before the events are written."""
        if owed := [debt for debt in debts if debt.changes]:
            await self._notes.insert_many(self._new(owed))

    def _new(self, debts: Sequence[Debt]) -> list[dict[str, Any]]:
        self.unseen += len(debts)
        parts = [debts[at : at + LARGEST] for at in range(0, len(debts), LARGEST)]
        return [Note(ObjectId(), part).document() for part in parts]

    async def state(self) -> tuple[int, Plan | None, list[Note]]:
        """The number of the last plan to count; the plan, if it is not yet carried out; and all notes."""
        self.unseen = 0
        rows = await self._notes.with_options(read_concern=AT_ONCE).find().to_list(None)
        found = {row["_id"]: row for row in rows}
        if (last := found.pop(PLAN, None)) is None:
            last = {"n": 0, "plan": None}
            await self._notes.update_one({"_id": PLAN}, {"$setOnInsert": last}, upsert=True)
        notes = [
            Note(id, [noted_debt(noted) for noted in note.get("writes", ())]) for id, note in found.items()
        ]
        return last["n"], last["plan"], notes

    async def begin(self, last: int, plan: Plan) -> int:
        """The number of the plan; 0 if another was begun since: it may have counted the same. Numbers go up
        with the clock, so that they still do after all that is known of plans was lost."""
        number = max(last + 1, time.time_ns() // 1_000_000)
        idle = {"_id": PLAN, "n": last, "plan": None}
        begun = await self._notes.update_one(idle, {"$set": {"n": number, "plan": plan}})
        return number if begun.matched_count else 0

    async def end(self, number: int) -> None:
        """Of a plan that was carried out. Whoever sees this sees all that was done before."""
        await self._notes.update_one({"_id": PLAN, "n": number}, {"$set": {"plan": None}})

    async def take(self, notes: Sequence[ObjectId], marks: Sequence[ObjectId]) -> None:
        """Takes whole notes away, and single debts out of others."""
        if notes:
            await self._notes.delete_many({"_id": {"$in": notes}})
        if marks:
            settled = {"mark": {"$in": marks}}
            await self._notes.update_many({"writes": {"$elemMatch": settled}}, {"$pull": {"writes": settled}})

    async def drop(self, before: datetime) -> None:
        """Notes of events that have not come until now never will."""
        old = {"_id": {"$lt": ObjectId.from_datetime(before.replace(tzinfo=UTC))}}
        await self._notes.delete_many({"$or": [old, {"writes": []}]})


class Truth:
    """Which debts are of writes that were made, which of writes that may still come; others were refused."""

    def __init__(self, debts: Iterable[Debt], events: Mapping[int, Mapping[str, Any]]) -> None:
        by_event: defaultdict[int, list[Debt]] = defaultdict(list)
        for debt in debts:
            by_event[debt.event].append(debt)
        self.made: list[Debt] = []
        self.open: set[ObjectId] = set()
        for id, its in by_event.items():
            event = events.get(id, {})
            # The mark of an event leads to the last of them, and each of them to the one before.
            by_mark: dict[ObjectId | None, Debt] = {debt.mark: debt for debt in its}
            mark = event.get("debt")
            while mark in by_mark:
                self.made.append(made := by_mark.pop(mark))
                mark = made.after
            self.open |= {debt.mark for debt in by_mark.values() if event.get("version", 0) < debt.version}
