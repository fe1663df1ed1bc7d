"""Slugs, unique within a kind: a taken one gets the suffix -2, -3 and so on."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Collection, Container, Iterable, Sequence

from cachetools import LRUCache, TTLCache

from schemas.kind import Document
from schemas.slugs import numbered
from service.mongo.client import Database, collections

MAX_CACHED_SLUGS = 10_000
"""Number of slugs whose last number is remembered: most repeated names then need one query."""

RESERVED_SECONDS = 30
"""How long a slug is reserved for a record that is about to be stored."""


class Slugs:
    """Finds free slugs. Another process may still take one first: then the unique index refuses the write,
    and the writer retries."""

    def __init__(self, database: Database) -> None:
        self._collection = collections(database)
        self._turn = asyncio.Lock()
        self._reserved: TTLCache[tuple[str, str], str] = TTLCache(MAX_CACHED_SLUGS, RESERVED_SECONDS)
        """Slugs of records that this process is about to store -> the slugs without their numbers."""
        self._last: LRUCache[tuple[str, str], int] = LRUCache(MAX_CACHED_SLUGS)

    async def free(self, plural: str, desired: str, own: int) -> str:
        """The desired slug, or its first free numbered form, for an existing record."""
        chosen = (await self.free_for_all(plural, [desired], own))[0]
        self._reserved.pop((plural, chosen), None)
        return chosen

    async def free_for_all(
        self, plural: str, desired: Sequence[str], own: int | None = None, *, expect_free: bool = False
    ) -> list[str]:
        """Reserve a different free slug for each record of a batch. With `expect_free`, unknown slugs are not
        looked up: for a single record this is cheaper, and the unique index refuses those that are taken."""
        async with self._turn:
            if expect_free and self._are_new(plural, desired):
                return list(self.reserve(plural, desired))
            return await self._reserve(plural, desired, own)

    def reserve(self, plural: str, slugs: Sequence[str]) -> Sequence[str]:
        """Reserve slugs without looking whether they are free."""
        self._reserved.update(((plural, slug), slug) for slug in slugs)
        return slugs

    def _are_new(self, plural: str, slugs: Sequence[str]) -> bool:
        known = ((plural, slug) in self._reserved or (plural, slug) in self._last for slug in slugs)
        return len(set(slugs)) == len(slugs) and not any(known)

    async def _reserve(self, plural: str, desired: Sequence[str], own: int | None) -> list[str]:
        needed = Counter(desired)
        last = {slug: self._last.get((plural, slug), 1) for slug in needed}
        blocks = {slug: {1, *range(last[slug], last[slug] + number + 1)} for slug, number in needed.items()}
        forms = {numbered(slug, number) for slug, block in blocks.items() for number in block}
        taken = await self._taken(plural, forms, own)
        chosen: dict[str, deque[str]] = {}
        for slug, number in needed.items():
            if last[slug] > 1 and numbered(slug, last[slug]) not in taken:
                blocks[slug] = {1}  # the number remembered is no longer the last one
            free = [at for at in sorted(blocks[slug]) if numbered(slug, at) not in taken][:number]
            taken.update(numbered(slug, at) for at in free)
            while len(free) < number:
                end = await self._end(plural, slug, own, taken)
                block = range(end, end + number - len(free))
                taken |= await self._taken(plural, [numbered(slug, at) for at in block], own)
                free += [at for at in block if numbered(slug, at) not in taken]
                taken.update(numbered(slug, at) for at in free)
            self._last[plural, slug] = free[-1]
            chosen[slug] = deque(numbered(slug, at) for at in free)
            self._reserved.update(((plural, form), slug) for form in chosen[slug])
            taken.update(chosen[slug])
        return [chosen[slug].popleft() for slug in desired]

    async def _end(self, plural: str, slug: str, own: int | None, taken: set[str]) -> int:
        """The number after the last one in use, by exponential and binary search: few queries, even for the
        thousandth record of a name in a process that has not seen the others."""

        async def is_taken(number: int) -> bool:
            form = numbered(slug, number)
            return form in taken or bool(await self._taken(plural, [form], own))

        low, high = 1, 2
        while await is_taken(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if await is_taken(middle) else (low, middle)
        return high

    async def _taken(self, plural: str, slugs: Collection[str], own: int | None) -> set[str]:
        # Before the query: a record that is stored meanwhile may be missing from both.
        reserved = {slug for slug in slugs if (plural, slug) in self._reserved}
        return reserved | await self.stored(plural, slugs, own)

    async def stored(self, plural: str, slugs: Collection[str], own: int | None = None) -> set[str]:
        """Those of the slugs that other records have."""
        rows = self._collection(plural).find({"slug": {"$in": list(slugs)}}, {"slug": 1})
        return {row["slug"] for row in await rows.to_list(None) if row["_id"] != own}

    def release(self, plural: str, records: Iterable[Document], failed: Container[int] = ()) -> None:
        """End the reservation of the slugs of records. Others may have the numbers of those not stored."""
        for record in records:
            base = self._reserved.pop((plural, record["slug"]), None)
            if base is not None and record["_id"] in failed:
                self._last.pop((plural, base), None)
