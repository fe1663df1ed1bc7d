"""Record ids: never reused, and reserved in blocks, so that most creations need no extra round trip."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque

from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from schemas import KINDS
from service.store.mongo.client import Database

SMALLEST, LARGEST = 16, 1024
"""Block sizes. Ids left over when a process ends are lost, so the first block is small; each next one is
twice as large, since creations wait while a block is reserved."""


class Ids:
    """Assigns ids, separately for posts, terms, tokens and the words of the search vocabulary."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._free: defaultdict[str, deque[int]] = defaultdict(deque)
        self._sizes: defaultdict[str, int] = defaultdict(lambda: SMALLEST)
        self._lock = asyncio.Lock()

    async def next(self, space: str) -> int:
        return (await self.many(space, 1))[0]

    async def many(self, space: str, number: int) -> list[int]:
        free = self._free[space]
        async with self._lock:
            if len(free) < number:
                free.extend(await self._block(space, max(number, self._sizes[space])))
                self._sizes[space] = min(2 * self._sizes[space], LARGEST)
            return [free.popleft() for _ in range(number)]

    async def single(self, space: str) -> int:
        """Reserve a single id, for rare creations: none are left over."""
        return (await self._block(space, 1))[0]

    async def _block(self, space: str, size: int) -> range:
        counters = self._database["counters"]
        while True:
            try:
                found = await counters.find_one_and_update(
                    {"_id": space}, {"$inc": {"n": size}}, upsert=True, return_document=ReturnDocument.AFTER
                )
                return range(found["n"] - size + 1, found["n"] + 1)
            except DuplicateKeyError:  # another process created the counter first
                continue

    async def catch_up(self) -> None:
        """Raise the counters to the highest ids in use: after a restore they may be behind."""
        for space in {kind.id_space for kind in KINDS}:
            collections = [self._database[kind.plural] for kind in KINDS if kind.id_space == space]
            newest = [await one.find_one({}, {"_id": 1}, sort=[("_id", -1)]) for one in collections]
            highest = max((found["_id"] for found in newest if found), default=0)
            await self._database["counters"].update_one({"_id": space}, {"$max": {"n": highest}}, upsert=True)
