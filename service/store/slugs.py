"""Slugs: unique in their kind; a taken one gets -2, -3 and so on."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from schemas.slugs import numbered
from service.store.client import Database

REMEMBERED = 10_000


class Slugs:
    """Finds free slugs. Another process may still take one first: the unique index says so, and the writer
    asks again."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._last: dict[tuple[str, str], int] = {}

    async def free(
        self, plural: str, wished: str, own: int | None = None, taken: AbstractSet[str] = frozenset()
    ) -> str:
        """The wished slug, or its first free numbered form."""

        async def is_taken(number: int) -> bool:
            if numbered(wished, number) in taken:
                return True
            found = await self._database[plural].find_one({"slug": numbered(wished, number)}, {"_id": 1})
            return found is not None and found["_id"] != own

        if not await is_taken(1):
            return wished
        # From the last number given: doubling, then halving, so that the thousandth of a title costs few
        # look-ups even in a process that has not seen the others.
        low, step = 1, 1
        if (last := self._last.get((plural, wished), 1)) > 1 and await is_taken(last):
            low = last
        while await is_taken(low + step):
            low, step = low + step, step * 2
        high = low + step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if await is_taken(middle) else (low, middle)
        if len(self._last) >= REMEMBERED:
            self._last.clear()
        self._last[plural, wished] = high
        return numbered(wished, high)

    async def free_for_all(self, plural: str, wished: Sequence[str], last: dict[str, int]) -> list[str]:
        """A free slug for each wish, all of them different. `last` remembers the numbers that are gone."""
        missing, taken = Counter(wished), set[str]()
        forms: dict[str, deque[str]] = {wish: deque() for wish in missing}
        while +missing:
            blocks = {wish: _next_forms(wish, last, number) for wish, number in (+missing).items()}
            taken |= await self._taken(plural, [form for block in blocks.values() for form in block])
            for wish, block in blocks.items():
                free = [form for form in block if form not in taken]
                forms[wish].extend(free)
                taken.update(free)
                missing[wish] -= len(free)
                if not free:  # there are many: find the end of them
                    last[wish] = int((await self.free(plural, wish, taken=taken)).rpartition("-")[2]) - 1
        return [forms[wish].popleft() for wish in wished]

    async def _taken(self, plural: str, slugs: Sequence[str]) -> set[str]:
        rows = self._database[plural].find({"slug": {"$in": list(set(slugs))}}, {"slug": 1, "_id": 0})
        return {row["slug"] async for row in rows}


def _next_forms(wish: str, last: dict[str, int], number: int) -> list[str]:
    first = last.get(wish, 0) + 1
    last[wish] = first + number - 1
    return [numbered(wish, at) for at in range(first, first + number)]
