"""Slugs, unique within a kind: a taken one gets the suffix -2, -3 and so on."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from cachetools import LRUCache, TTLCache

from schemas.kind import Kind
from schemas.values.slugs import numbered, slug_of
from service.mongo.client import Database, collections, find

MAX_CACHED_SLUGS = 10_000
"""Number of slugs whose last number is remembered: most repeated names then need one query."""
FIRST_WINDOW, MAX_LOOKED_UP = 32, 100_000
"""How many numbers of a slug are looked up if those that are likely to be free are not. Each query looks up
twice as many as the one before, but at most 100,000 slugs."""
RESERVED_SECONDS = 30
"""How long a slug is reserved for a record that is about to be stored."""
Slug = tuple[str, str]
"""The plural of a kind, and a slug."""


def desired_slug(kind: Kind, data: Mapping[str, Any]) -> str:
    """The slug sent for a new record, or one made from its name."""
    return slug_of(data.get("slug") or "", "") or slug_of(data[kind.name_field], kind.name)


def forms(numbers: Mapping[str, Iterable[int]]) -> set[str]:
    """The numbered forms of slugs."""
    return {numbered(slug, number) for slug, many in numbers.items() for number in many}


def choose(
    chosen: Mapping[str, list[int]],
    needed: Mapping[str, int],
    numbers: Mapping[str, Iterable[int]],
    taken: set[str],
) -> list[str]:
    """Choose free ones of some numbers of each slug, which are taken then; return the slugs that need more.
    Two numbers of a long slug may have the same form."""
    for slug, many in numbers.items():
        for number in many:
            if len(chosen[slug]) < needed[slug] and (form := numbered(slug, number)) not in taken:
                chosen[slug].append(number)
                taken.add(form)
    return [slug for slug, count in needed.items() if count > len(chosen[slug])]


class Slugs:
    """Finds free slugs. Another process may still take one first: then the unique index refuses the write,
    and the writer retries."""

    def __init__(self, database: Database) -> None:
        self._collection = collections(database)
        self._lock = asyncio.Lock()
        self._reserved: TTLCache[Slug, bool] = TTLCache(MAX_CACHED_SLUGS, RESERVED_SECONDS)
        """Slugs of records that this process is about to store."""
        self._highest: LRUCache[Slug, int] = LRUCache(MAX_CACHED_SLUGS)
        """The highest number of each slug that this process knows."""

    @contextmanager
    def reservations(self) -> Iterator[set[Slug]]:
        """Slugs that are added to the set are no longer reserved when the context is left."""
        reserved = set[Slug]()
        try:
            yield reserved
        finally:
            for slug in reserved:
                self._reserved.pop(slug, None)

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
        async with self._lock:
            if expect_free and self._are_new(plural, desired):
                return list(self.reserve_exact(plural, desired))
            return await self._reserve(plural, desired, own)

    def reserve_exact(self, plural: str, slugs: Sequence[str]) -> Sequence[str]:
        """Reserve slugs without checking that they are free."""
        self._reserved.update(((plural, slug), True) for slug in slugs)
        return slugs

    def _are_new(self, plural: str, slugs: Sequence[str]) -> bool:
        known = ((plural, slug) in self._reserved or (plural, slug) in self._highest for slug in slugs)
        return len(set(slugs)) == len(slugs) and not any(known)

    async def _reserve(self, plural: str, desired: Sequence[str], own: int | None) -> list[str]:
        needed, window = Counter(desired), FIRST_WINDOW
        highest = {slug: self._highest.get((plural, slug), 1) for slug in needed}
        numbers: dict[str, Sequence[int]]
        numbers = {slug: sorted({1, *range(last, last + needed[slug] + 1)}) for slug, last in highest.items()}
        taken = await self._taken(plural, forms(numbers), own)
        # If the record with the highest number has gone, those before it may have gone, too.
        gone = {slug for slug, last in highest.items() if last > 1 and numbered(slug, last) not in taken}
        numbers |= {slug: [1] for slug in gone}
        chosen: dict[str, list[int]] = {slug: [] for slug in needed}
        while short := choose(chosen, needed, numbers, taken):
            window = min(window, max(1, MAX_LOOKED_UP // len(short)))
            looked_up = {slug: numbers[slug][-1] for slug in short}
            numbers = {slug: range(last + 1, last + 1 + window) for slug, last in looked_up.items()}
            taken |= await self._taken(plural, forms(numbers), own)
            window *= 2
        for slug, free in chosen.items():
            self._highest[plural, slug] = free[-1]
            self.reserve_exact(plural, [numbered(slug, number) for number in free])
        left = {slug: iter(free) for slug, free in chosen.items()}
        return [numbered(slug, next(left[slug])) for slug in desired]

    async def _taken(self, plural: str, slugs: Collection[str], own: int | None) -> set[str]:
        # Before the query: a record that is stored meanwhile may be missing from both.
        reserved = {slug for slug in slugs if (plural, slug) in self._reserved}
        return reserved | await self.stored(plural, slugs, own)

    async def stored(self, plural: str, slugs: Collection[str], own: int | None = None) -> set[str]:
        """The slugs that other records have."""
        rows = await find(self._collection(plural), {"slug": {"$in": list(slugs)}}, {"slug": 1})
        return {row["slug"] for row in rows if row["_id"] != own}
