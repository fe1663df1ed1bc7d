"""Slugs, unique within a kind: a taken one gets the suffix -2, -3 and so on."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from weakref import WeakValueDictionary

from schemas.slugs import numbered
from service.store.mongo.client import Database, collections
from service.store.mongo.coalescing import Batcher
from service.store.naming import Naming

REMEMBERED = 10_000
"""Maximum number of slugs whose last number is cached."""
Forms = tuple[str, frozenset[str]]
"""The plural of a kind, and slugs that may be taken."""


class Slugs:
    """Finds free slugs. Another process may still take one first: then the unique index refuses the write,
    and the writer retries."""

    def __init__(self, database: Database) -> None:
        self._collection = collections(database)
        self._last: dict[tuple[str, str], int] = {}
        self._looks = Batcher[Forms, Mapping[str, int]](self._look)
        self._namings: WeakValueDictionary[tuple[str, str], Naming] = WeakValueDictionary()

    def naming(self, plural: str, desired: str) -> Naming:
        """The number generator shared by all concurrent writers that want the same slug."""
        key = (plural, desired)
        if not (naming := self._namings.get(key)):
            look = partial(self.free_number, plural, desired)
            naming = self._namings[key] = Naming(look, is_repeated=key in self._last)
        return naming

    async def free(
        self, plural: str, desired: str, own: int | None = None, taken: AbstractSet[str] = frozenset()
    ) -> str:
        """The requested slug, or its first free numbered form."""
        return numbered(desired, await self.free_number(plural, desired, own, taken))

    async def free_number(
        self, plural: str, desired: str, own: int | None = None, taken: AbstractSet[str] = frozenset()
    ) -> int:
        async def are_taken(*numbers: int) -> list[bool]:
            forms = [numbered(desired, number) for number in numbers]
            stored = await self._taken(plural, forms, own)
            return [form in stored or form in taken for form in forms]

        last = self._last.get((plural, desired), 1)
        is_first_taken, is_last_taken, is_next_taken = await are_taken(1, last, last + 1)
        if not is_first_taken:
            return 1
        low, high = (last, last + 1) if is_last_taken else (1, 2)
        if is_next_taken or not is_last_taken:
            # Exponential, then binary search: the thousandth record of a title takes few look-ups, even in a
            # process that has not seen the others.
            while (await are_taken(high))[0]:
                low, high = high, high + 2 * (high - low)
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if (await are_taken(middle))[0] else (low, middle)
        if len(self._last) >= REMEMBERED:
            self._last.clear()
        self._last[plural, desired] = high
        return high

    async def free_for_all(self, plural: str, desired: Sequence[str], last: dict[str, int]) -> list[str]:
        """A different free slug for each request. `last` caches the last number used for each slug."""
        missing, taken = Counter(desired), set[str]()
        forms: dict[str, deque[str]] = {ref: deque() for ref in missing}
        while +missing:
            blocks = {ref: _next_forms(ref, last, number) for ref, number in (+missing).items()}
            taken |= await self._taken(plural, [form for block in blocks.values() for form in block])
            for ref, block in blocks.items():
                free = [form for form in block if form not in taken]
                forms[ref].extend(free)
                taken.update(free)
                missing[ref] -= len(free)
                if not free:  # many are taken: search for the end
                    last[ref] = await self.free_number(plural, ref, taken=taken) - 1
        return [forms[ref].popleft() for ref in desired]

    async def _taken(self, plural: str, slugs: Iterable[str], own: int | None = None) -> set[str]:
        found = await self._looks.load((plural, frozenset(slugs))) or {}
        return {slug for slug, id in found.items() if id != own}

    async def _look(self, asked: Sequence[Forms]) -> dict[Forms, Mapping[str, int]]:
        """Find the ids of records that have these slugs, for all concurrent callers."""
        wanted: defaultdict[str, set[str]] = defaultdict(set)
        for plural, slugs in asked:
            wanted[plural] |= slugs
        found = {plural: await self._ids(plural, slugs) for plural, slugs in wanted.items()}
        return {(plural, slugs): found[plural] for plural, slugs in asked}

    async def _ids(self, plural: str, slugs: Iterable[str]) -> dict[str, int]:
        rows = self._collection(plural).find({"slug": {"$in": list(slugs)}}, {"slug": 1})
        return {row["slug"]: row["_id"] for row in await rows.to_list(None)}


def _next_forms(ref: str, last: dict[str, int], number: int) -> list[str]:
    first = last.get(ref, 0) + 1
    last[ref] = first + number - 1
    return [numbered(ref, at) for at in range(first, first + number)]
