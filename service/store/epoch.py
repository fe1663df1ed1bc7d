"""Version stamp of all linked records: while it is the same, no venue, organizer or term has changed.

A writer that changes one sets a new stamp before it looks for the events that embed it, and before it
responds. So a copy that was read and stored under the same stamp is current, or that fan-out will find it.
"""

from __future__ import annotations

from collections.abc import Sequence

from bson import ObjectId

from service.store.mongo.client import Database
from service.store.mongo.coalescing import Batcher

EPOCH = {"_id": "epoch"}


class Outdated(Exception):
    """Linked records may have changed since they were cached."""


class Epoch:
    """Reads and renews the version stamp, a unique id in the database."""

    def __init__(self, database: Database) -> None:
        self._marks = database["counters"]
        self._batch = Batcher[None, ObjectId](self._look)

    async def now(self) -> ObjectId | None:
        """The current stamp; None if there was none, so that nothing read earlier can be trusted."""
        return await self._batch.load(None)

    async def _look(self, _: Sequence[None]) -> dict[None, ObjectId]:
        if found := await self._marks.find_one(EPOCH):
            return {None: found["mark"]}
        await self.begin()
        return {}

    async def begin(self) -> None:
        """Set a new stamp."""
        await self._marks.update_one(EPOCH, {"$set": {"mark": ObjectId()}}, upsert=True)
