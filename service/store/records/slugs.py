"""Slugs, unique within a kind: a taken one gets the suffix -2, -3 and so on."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from cachetools import LRUCache, TTLCache

from schemas.kind import Document, Kind
from schemas.values.slugs import numbered, slug_of
from service.mongo.client import Database, collections, find

MAX_CACHED_SLUGS = 10_000
"""Number of slugs whose last number is remembered: most repeated names then need one query."""
MAX_DIGITS = 7
ALL_NUMBERS = range(1, 10**MAX_DIGITS)
RESERVED_SECONDS = 30
"""How long a slug is reserved for a record that is about to be stored."""


def desired_slug(kind: Kind, data: Mapping[str, Any]) -> str:
    """The slug sent for a new record, or one made from its name."""
    return slug_of(data.get("slug") or "", "") or slug_of(data[kind.name_field], kind.name)


def likely_numbers(highest: int, count: int) -> Sequence[int]:
    """The numbers of a slug to look up first: 1, the highest one known, and so many after it."""
    return sorted({1, *range(highest, highest + count + 1)})


def is_numbered(slug: str) -> Document:
    """A condition for the numbered forms of a slug, which may be cut if their numbers have many digits."""
    numbers = [2 * 10**digits for digits in range(MAX_DIGITS)]
    before = {numbered(slug, number).removesuffix(str(number)) for number in numbers}
    return {"$or": [{"slug": {"$gte": f"{text}0", "$lt": f"{text}:"}} for text in before]}  # `:` follows 9


def choose(
    needed: Mapping[str, int], numbers: Mapping[str, Sequence[int]], taken: Collection[str]
) -> dict[str, list[int]]:
    """The first free ones of some numbers of each slug, at most as many as are needed."""
    chosen: dict[str, list[int]] = {}
    taken = set(taken)
    for slug, count in needed.items():
        free = (number for number in numbers[slug] if numbered(slug, number) not in taken)
        chosen[slug] = list(islice(free, count))
        taken.update(numbered(slug, number) for number in chosen[slug])
    return chosen


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
        numbers = {slug: likely_numbers(highest[slug], count) for slug, count in needed.items()}
        forms = {numbered(slug, number) for slug, likely in numbers.items() for number in likely}
        taken = await self._taken(plural, forms, own)
        # If the record with the highest number has gone, those before it may have gone, too.
        unsure = {slug for slug, last in highest.items() if last > 1 and numbered(slug, last) not in taken}
        while True:
            taken |= await self._all_taken(plural, unsure, own)
            numbers |= dict.fromkeys(unsure, ALL_NUMBERS)
            chosen = choose(needed, numbers, taken)
            if not (unsure := {slug for slug, count in needed.items() if len(chosen[slug]) < count}):
                break
        for slug, free in chosen.items():
            self._highest[plural, slug] = free[-1]
            self._reserved.update(((plural, numbered(slug, number)), slug) for number in free)
        left = {slug: iter(free) for slug, free in chosen.items()}
        return [numbered(slug, next(left[slug])) for slug in desired]

    async def _taken(self, plural: str, slugs: Collection[str], own: int | None) -> set[str]:
        # Before the query: a record that is stored meanwhile may be missing from both.
        reserved = {slug for slug in slugs if (plural, slug) in self._reserved}
        return reserved | await self.stored(plural, slugs, own)

    async def _all_taken(self, plural: str, slugs: Collection[str], own: int | None) -> set[str]:
        """All numbered forms of some slugs that are taken."""
        if not slugs:
            return set()
        reserved = {form for kind, form in list(self._reserved) if kind == plural}
        return reserved | await self._stored(plural, {"$or": [*map(is_numbered, slugs)]}, own)

    async def stored(self, plural: str, slugs: Collection[str], own: int | None = None) -> set[str]:
        """The slugs that other records have."""
        return await self._stored(plural, {"slug": {"$in": list(slugs)}}, own)

    async def _stored(self, plural: str, query: Document, own: int | None) -> set[str]:
        rows = await find(self._collection(plural), query, {"slug": 1})
        return {row["slug"] for row in rows if row["_id"] != own}

    def release(self, plural: str, records: Iterable[Document], failed: Container[int] = ()) -> None:
        """End the reservation of the slugs of records. Others may have the numbers of those not stored."""
        for record in records:
            base = self._reserved.pop((plural, record["slug"]), None)
            if base is not None and record["_id"] in failed:
                self._highest.pop((plural, base), None)
