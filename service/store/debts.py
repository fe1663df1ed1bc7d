"""Notes of what is still to be counted: written before an event is, crossed off when its counters are right.

A process that dies in between leaves its note, and the next sweep of any process counts afresh what it names.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId
from pymongo import WriteConcern
from pymongo.errors import DuplicateKeyError

from service.store.batches import Batch
from service.store.client import Database

GRACE = timedelta(seconds=10)
"""A note older than this belongs to a process that died."""
UNWRITTEN = timedelta(hours=1)
"""A note whose event is not as it says is kept this long: the write may still be on its way."""
Use = tuple[str, int]
"""A field of events, and the id of a record that one links to there."""
State = tuple[bool, bool, datetime | None]
"""Whether a use counts as published and as live, and when it ends."""
UseChanges = Mapping[Use, tuple[State, State]]
"""What each use was before a write, and is after it."""


@dataclass(frozen=True, eq=False)
class Debt:
    """What one write of an event changes in the counters of what it links to."""

    event: int
    version: int
    at: datetime
    changes: UseChanges
    id: ObjectId = field(default_factory=ObjectId)

    def note(self) -> dict[str, Any]:
        refs = [f"{field}:{id}" for field, id in self.changes]
        return {"_id": self.id, "event": self.event, "version": self.version, "at": self.at, "refs": refs}


class Debts:
    """The notes of all processes."""

    def __init__(self, database: Database) -> None:
        self._notes = database["debts"]
        # Nobody waits until all members of a set have it. Whoever has the event that is written next has its
        # note too, for their log is one; and a note that comes back only makes a sweep count again.
        self._soon = self._notes.with_options(write_concern=WriteConcern(1))
        self._writing = Batch[Debt, None](self._write)
        self._crossing = Batch[Debt, bool](self._cross_off)

    @asynccontextmanager
    async def noted(self, debt: Debt) -> AsyncIterator[None]:
        """Around the write of an event."""
        if debt.changes:
            await self._writing.ask(debt)
        try:
            yield
        except DuplicateKeyError:  # other errors do not tell whether it was written
            await self.cross_off(debt)
            raise

    async def _write(self, debts: Sequence[Debt]) -> dict[Debt, None]:
        await self._soon.insert_many([debt.note() for debt in debts], ordered=False)
        return {}

    async def cross_off(self, debt: Debt) -> bool:
        """False where a sweep has taken it up, and has counted too."""
        return not debt.changes or bool(await self._crossing.ask(debt))

    async def _cross_off(self, debts: Sequence[Debt]) -> dict[Debt, bool]:
        mine = {"_id": {"$in": [debt.id for debt in debts]}, "late": {"$ne": True}}
        crossed = await self._soon.delete_many(mine)
        return dict.fromkeys(debts, crossed.deleted_count == len(debts))

    async def is_open(self, ref: str, now: datetime) -> bool:
        """Whether a process may be counting this at the moment."""
        return await self._notes.find_one({"refs": ref, "at": {"$gte": now - GRACE}}) is not None

    def left(self, now: datetime) -> AsyncIterator[dict[str, Any]]:
        return self._notes.find({"at": {"$lt": now - GRACE}})

    async def take_up(self, note: Mapping[str, Any]) -> bool:
        """Lets its writer know, should it be alive; False if it has finished meanwhile."""
        taken = await self._notes.update_one({"_id": note["_id"]}, {"$set": {"late": True}})
        return bool(taken.matched_count)

    async def drop(self, note: Mapping[str, Any]) -> None:
        await self._notes.delete_one({"_id": note["_id"]})
