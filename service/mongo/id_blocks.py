"""Record ids: never reused, and reserved in blocks, so that most creations need no extra round trip."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque

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

    async def raise_to(self, space: str, highest: int) -> None:
        """Do not assign ids up to this one."""
        async with self._lock:
            await self._counters.update_one({"_id": space}, {"$max": {"n": highest}}, upsert=True)
            self._free[space] = deque(id for id in self._free[space] if id > highest)

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
