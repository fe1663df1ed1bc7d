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


class Depths:
    """A list by rank."""

    def __init__(self, collection: Collection, asked: Asked, tally: Tally, news: News) -> None:
        self._collection, self._asked, self._tally, self._news = collection, asked, tally, news
        self._marks = tally.marks_of(asked.sort)
        self._place = {name: 1 for name, _ in asked.sort}

    async def rows(self, rank: int, limit: int, shown: Mapping[str, int]) -> list[Document]:
        """Records from a rank on."""
        if self._marks.before(rank).rank < rank - FAR:
            async with self._marks.turn:
                await self._approach(rank)
        return await self._survey(rank, limit, shown)

    async def _approach(self, rank: int) -> None:
        while (last := self._marks.before(rank)).rank < rank - FAR:
            await self._survey(last.rank + FAR, 1, self._place)  # from the index alone
            if self._marks.before(rank) == last:
                return

    async def _survey(self, rank: int, limit: int, shown: Mapping[str, int]) -> list[Document]:
        """Records from a rank on. If the first is not near a mark, one is set at it."""
        seen, mark = self._tally.seen, self._marks.before(rank)
        skip, is_far = rank - mark.rank, rank - mark.rank > NEAR
        wanted = {**shown, **self._place} if is_far else shown
        rows = await self._asked.rows(self._collection, skip, limit, wanted, self._marks.beyond(mark))
        if is_far and rows:
            await self._news.catch_up()
            if self._news.number == seen:  # else the ranks may have moved under our feet
                self._marks.set(rank, rows[0])
        return rows
