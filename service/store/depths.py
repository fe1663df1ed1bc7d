"""The way to the pages of a long list: by marks, and not by counting from its first record."""

from __future__ import annotations

from collections.abc import Mapping

from schemas.kind import Document
from service.store.asked import Asked
from service.store.client import Collection
from service.store.news import News
from service.store.tally import Tally

FAR = 4000
"""Records that one query should skip at most."""
NEAR = 200
"""Records that it may skip each time."""
STRETCH = 100
"""Records among which a mark is set on a long way: not all of them have the same value."""


class Depths:
    """A list by rank."""

    def __init__(self, collection: Collection, asked: Asked, tally: Tally, news: News) -> None:
        self._collection, self._asked, self._tally, self._news = collection, asked, tally, news
        self._marks = tally.marks_of(asked.sort)
        self._field, _ = asked.sort[0]

    async def rows(self, rank: int, limit: int, shown: Mapping[str, int]) -> list[Document]:
        """Records from a rank on."""
        if self._marks.before(rank).rank < rank - FAR:
            async with self._marks.turn:
                await self._approach(rank)
        return await self._survey(rank, limit, shown)

    async def _approach(self, rank: int) -> None:
        while (last := self._marks.before(rank)).rank < rank - FAR:
            await self._survey(last.rank + FAR, STRETCH, {self._field: 1})  # from the index alone
            if self._marks.before(rank) == last:
                return

    async def _survey(self, rank: int, limit: int, shown: Mapping[str, int]) -> list[Document]:
        """Records from a rank on. If they are not near a mark, one is set among them."""
        seen, mark = self._tally.seen, self._marks.before(rank)
        skip, beyond = rank - mark.rank, self._marks.condition(mark)
        if skip > NEAR:
            shown = {**shown, self._field: 1}
        rows = await self._asked.rows(self._collection, skip, limit, shown, beyond)
        if skip > NEAR:
            await self._news.catch_up()
            if self._news.number == seen:  # else the ranks may have moved under our feet
                self._marks.learn(rank, [row[self._field] for row in rows])
        return rows
