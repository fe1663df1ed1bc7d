"""Record ids: never reused, and reserved in blocks, so that most creations need no extra round trip."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from contextlib import suppress

from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from service.mongo.client import Database

MIN_BLOCK, MAX_BLOCK = 16, 1024
"""Block sizes. Ids left over when a process ends are lost, so the first block is small; each next one is
twice as large, since creations wait while a block is reserved."""


class Ids:
    """Assigns ids, separately for posts, terms, tokens, webhooks and the words of the search vocabulary."""

    def __init__(self, database: Database) -> None:
        self._counters = database["counters"]
        self._free: defaultdict[str, deque[int]] = defaultdict(deque)
        self._sizes: defaultdict[str, int] = defaultdict(lambda: MIN_BLOCK)
        self._lock = asyncio.Lock()

    async def next(self, space: str) -> int:
        return (await self.many(space, 1))[0]

    async def many(self, space: str, number: int) -> list[int]:
        async with self._lock:
            free = self._free[space]
            if len(free) < number:
                free.extend(await self._block(space, max(number, self._sizes[space])))
                self._sizes[space] = min(2 * self._sizes[space], MAX_BLOCK)
            return [free.popleft() for _ in range(number)]

    async def single(self, space: str) -> int:
        """Reserve a single id, for rare creations: none are left over."""
        return (await self._block(space, 1))[0]

    async def reserve_for_import(self, space: str, highest: int) -> list[tuple[int, int]]:
        """Reserve the ids up to this one that no process has reserved yet, for records that are imported with
        their ids; return all ranges that were reserved in this way, now or by earlier imports."""
        while True:
            counter = await self._counters.find_one({"_id": space}) or {"n": 0}
            ranges: list[tuple[int, int]] = counter.get("imported", [])
            if (last := counter["n"]) >= highest:
                return ranges
            # Adjacent ranges are one: an import raises the counter with each batch.
            first = ranges.pop()[0] if ranges and ranges[-1][1] == last else last + 1
            raised = {"n": highest, "imported": [*ranges, (first, highest)]}
            with suppress(DuplicateKeyError):  # another process was first
                await self._counters.update_one({"_id": space, "n": last}, {"$set": raised}, upsert=True)

    def forget(self) -> None:
        """Drop the ids that are reserved: others may have them after a restore."""
        self._free.clear()

    async def _block(self, space: str, size: int) -> range:
        while True:
            try:
                found = await self._counters.find_one_and_update(
                    {"_id": space}, {"$inc": {"n": size}}, upsert=True, return_document=ReturnDocument.AFTER
                )
                return range(found["n"] - size + 1, found["n"] + 1)
            except DuplicateKeyError:  # another process created the counter first
                continue
