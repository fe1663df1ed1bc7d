"""The epoch of all that events copy: as long as it is the same, no venue, organizer or term has changed.

Whoever changes one begins another epoch before looking for the events that show it, and before saying that
it is done. So a copy that was made and stored within one epoch is right, or will be found by that look.
"""

from __future__ import annotations

from collections.abc import Sequence

from bson import ObjectId

from service.store.batches import Batch
from service.store.client import Database

EPOCH = {"_id": "epoch"}


class Outdated(Exception):
    """What an event links to may have changed since it was remembered."""


class Epoch:
    """A mark in the database that is never the same again."""

    def __init__(self, database: Database) -> None:
        self._marks = database["counters"]
        self._batch = Batch[None, ObjectId](self._look)

    async def now(self) -> ObjectId | None:
        """None where there was none: nothing is known of the time before."""
        return await self._batch.ask(None)

    async def _look(self, _: Sequence[None]) -> dict[None, ObjectId]:
        if found := await self._marks.find_one(EPOCH):
            return {None: found["mark"]}
        await self.begin()
        return {}

    async def begin(self) -> None:
        await self._marks.update_one(EPOCH, {"$set": {"mark": ObjectId()}}, upsert=True)
