"""Slugs, unique within a kind: a taken one gets the suffix -2, -3 and so on."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Collection, Container, Iterable, Sequence

from cachetools import LRUCache, TTLCache

from schemas.kind import Document
from schemas.values.slugs import numbered
from service.mongo.client import Database, collections

MAX_CACHED_SLUGS = 10_000
"""Number of slugs whose last number is remembered: most repeated names then need one query."""

RESERVED_SECONDS = 30
"""How long a slug is reserved for a record that is about to be stored."""


def likely_numbers(highest: int, count: int) -> list[int]:
    """The numbers of a slug to look up first: 1, the highest one known, and so many after it."""
    return sorted({1, *range(highest, highest + count + 1)})


class Slugs:
    """Finds free slugs. Another process may still take one first: then the unique index refuses the write,
    and the writer retries."""

    def __init__(self, database: Database) -> None:
        self._collection = collections(database)
        self._turn = asyncio.Lock()
        self._reserved: TTLCache[tuple[str, str], str] = TTLCache(MAX_CACHED_SLUGS, RESERVED_SECONDS)
        """Slugs of records that this process is about to store -> the slugs without their numbers."""
        self._highest: LRUCache[tuple[str, str], int] = LRUCache(MAX_CACHED_SLUGS)
        """The highest number of each slug that this process knows."""

    async def free(self, plural: str, desired: str, own: int) -> str:
        """The desired slug, or its first free numbered form, for an existing record."""
        chosen = (await self.reserve_unique(plural, [desired], own))[0]
        self._reserved.pop((plural, chosen), None)
        return chosen

    async def reserve_unique(
        self, plural: str, desired: Sequence[str], own: int | None = None, *, expect_free: bool = False
    ) -> list[str]:
        """Reserve a different free slug for each record of a batch. With `expect_free`, unknown slugs are not
        looked up: for a single record this is cheaper, and the unique index refuses those that are taken."""
        async with self._turn:
            if expect_free and self._are_new(plural, desired):
                return list(self.reserve_exact(plural, desired))
            return await self._reserve(plural, desired, own)

    def reserve_exact(self, plural: str, slugs: Sequence[str]) -> Sequence[str]:
        """Reserve slugs without checking that they are free."""
        self._reserved.update(((plural, slug), slug) for slug in slugs)
        return slugs

    def _are_new(self, plural: str, slugs: Sequence[str]) -> bool:
        known = ((plural, slug) in self._reserved or (plural, slug) in self._highest for slug in slugs)
        return len(set(slugs)) == len(slugs) and not any(known)

    async def _reserve(self, plural: str, desired: Sequence[str], own: int | None) -> list[str]:
        needed = Counter(desired)
        highest = {slug: self._highest.get((plural, slug), 1) for slug in needed}
        likely = {slug: likely_numbers(highest[slug], count) for slug, count in needed.items()}
        forms = {numbered(slug, number) for slug, numbers in likely.items() for number in numbers}
        taken = await self._taken(plural, forms, own)
        chosen: dict[str, deque[str]] = {}
        for slug, count in needed.items():
            free = await self._free_numbers(plural, slug, count, highest[slug], taken, own)
            self._highest[plural, slug] = free[-1]
            chosen[slug] = deque(numbered(slug, number) for number in free)
            self._reserved.update(((plural, form), slug) for form in chosen[slug])
        return [chosen[slug].popleft() for slug in desired]

    async def _free_numbers(
        self, plural: str, slug: str, count: int, highest: int, taken: set[str], own: int | None
    ) -> list[int]:
        """As many free numbers of a slug as are needed; their slugs are added to `taken`."""
        # If the record with the highest number has gone, those before it may have gone, too.
        is_gone = highest > 1 and numbered(slug, highest) not in taken
        likely = [1] if is_gone else likely_numbers(highest, count)
        free = [number for number in likely if numbered(slug, number) not in taken][:count]
        taken.update(numbered(slug, number) for number in free)
        while len(free) < count:
            first = await self._first_unused(plural, slug, own, taken)
            block = range(first, first + count - len(free))
            taken |= await self._taken(plural, [numbered(slug, number) for number in block], own)
            free += [number for number in block if numbered(slug, number) not in taken]
            taken.update(numbered(slug, number) for number in free)
        return free

    async def _first_unused(self, plural: str, slug: str, own: int | None, taken: set[str]) -> int:
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
        """The slugs that other records have."""
        rows = self._collection(plural).find({"slug": {"$in": list(slugs)}}, {"slug": 1})
        return {row["slug"] for row in await rows.to_list(None) if row["_id"] != own}

    def release(self, plural: str, records: Iterable[Document], failed: Container[int] = ()) -> None:
        """End the reservation of the slugs of records. Others may have the numbers of those not stored."""
        for record in records:
            base = self._reserved.pop((plural, record["slug"]), None)
            if base is not None and record["_id"] in failed:
                self._highest.pop((plural, base), None)
