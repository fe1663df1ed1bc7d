"""Outbox of counter changes: an entry is written before its event.

Writers of events do not update counters. A reader that needs a counter has the outbox applied first, and
background maintenance applies it regularly. So a counter is exact when it is shown, even after a crash, and a
popular venue is updated once for hundreds of its events.
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

from service.store.mongo.client import Database
from service.store.mongo.coalescing import Batcher

Use = tuple[str, int]
"""A link field of events, and the id of a record linked there."""
State = tuple[bool, bool, datetime | None]
"""Whether an event counts as published and as live for a linked record, and when the event ends."""
UseChanges = Mapping[Use, tuple[State, State]]
"""The state of each use before and after a write."""
Plan = dict[str, Any]
PLAN = "plan"
"""Id of the document with the current plan."""
AT_ONCE = ReadConcern("snapshot")
"""Majority-committed data of a single point in time."""
LARGEST = 100
"""Maximum number of entries in one outbox document: MongoDB limits a document to 16 MiB."""


@dataclass(frozen=True, eq=False)
class Debt:
    """An outbox entry: how one write of an event changes the counters of linked records. The event stores the
    `mark` of its last entry; `after` is the mark of the entry before."""

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
    """An outbox document: the entries of writes made together."""

    id: ObjectId
    debts: Sequence[Debt]

    def document(self) -> dict[str, Any]:
        return {"_id": self.id, "writes": [debt.noted() for debt in self.debts]}


class Debts:
    """The outbox, which all processes share."""

    def __init__(self, database: Database) -> None:
        self._notes = database["debts"]
        self._writing = Batcher[Debt, None](self._write)
        self._crossing = Batcher[Debt, None](self._cross_off)
        self.unseen = 0
        """Entries that this process has added since it last read the outbox."""

    @asynccontextmanager
    async def noted(self, debt: Debt) -> AsyncIterator[None]:
        """Add an entry, then write the event in this context. An entry without its event is ignored."""
        if not debt.changes:
            yield
            return
        await self._writing.load(debt)
        try:
            yield
        except DuplicateKeyError:  # after other errors it may have been written
            await self._crossing.load(debt)
            raise

    async def _write(self, debts: Sequence[Debt]) -> dict[Debt, None]:
        await self.note(debts)
        return {}

    async def _cross_off(self, debts: Sequence[Debt]) -> dict[Debt, None]:
        await self.take([], [debt.mark for debt in debts])
        return {}

    async def note(self, debts: Iterable[Debt]) -> None:
        """Add entries, before the events are written."""
        if owed := [debt for debt in debts if debt.changes]:
            await self._notes.insert_many(self._new(owed))

    def _new(self, debts: Sequence[Debt]) -> list[dict[str, Any]]:
        self.unseen += len(debts)
        parts = [debts[at : at + LARGEST] for at in range(0, len(debts), LARGEST)]
        return [Note(ObjectId(), part).document() for part in parts]

    async def state(self) -> tuple[int, Plan | None, list[Note]]:
        """The number of the last plan; the plan, if it is not carried out yet; and all outbox documents."""
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
        """Store a plan and return its number; 0 if another process was first, whose plan may count the same.
        Numbers come from the clock, so that they still increase if the plan document is lost."""
        number = max(last + 1, time.time_ns() // 1_000_000)
        idle = {"_id": PLAN, "n": last, "plan": None}
        begun = await self._notes.update_one(idle, {"$set": {"n": number, "plan": plan}})
        return number if begun.matched_count else 0

    async def end(self, number: int) -> None:
        """Mark a plan as carried out. Whoever reads this also reads its updates."""
        await self._notes.update_one({"_id": PLAN, "n": number}, {"$set": {"plan": None}})

    async def take(self, notes: Sequence[ObjectId], marks: Sequence[ObjectId]) -> None:
        """Delete whole outbox documents, and single entries from others."""
        if notes:
            await self._notes.delete_many({"_id": {"$in": notes}})
        if marks:
            settled = {"mark": {"$in": marks}}
            await self._notes.update_many({"writes": {"$elemMatch": settled}}, {"$pull": {"writes": settled}})

    async def drop(self, before: datetime) -> None:
        """Delete old entries, whose events were never written, and empty documents."""
        old = {"_id": {"$lt": ObjectId.from_datetime(before.replace(tzinfo=UTC))}}
        await self._notes.delete_many({"$or": [old, {"writes": []}]})


class Truth:
    """Sorts entries by their writes: `made` were completed, `open` may still come, the others failed."""

    def __init__(self, debts: Iterable[Debt], events: Mapping[int, Mapping[str, Any]]) -> None:
        by_event: defaultdict[int, list[Debt]] = defaultdict(list)
        for debt in debts:
            by_event[debt.event].append(debt)
        self.made: list[Debt] = []
        self.open: set[ObjectId] = set()
        for id, its in by_event.items():
            event = events.get(id, {})
            # The event has the mark of its last entry, and each entry that of the one before.
            by_mark: dict[ObjectId | None, Debt] = {debt.mark: debt for debt in its}
            mark = event.get("debt")
            while mark in by_mark:
                self.made.append(made := by_mark.pop(mark))
                mark = made.after
            self.open |= {debt.mark for debt in by_mark.values() if event.get("version", 0) < debt.version}
