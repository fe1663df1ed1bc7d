"""Deep pages of a long list: found from page anchors, not by skipping from the first record."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from schemas.event import EVENT
from schemas.kind import Document
from service.store.change_feed import ChangeFeed
from service.store.lists.predicates import Unknown
from service.store.lists.query import ListQuery
from service.store.mongo.client import Database
from service.store.mongo.snapshots import snapshot
from service.store.tally import Tally

FAR = 4000
"""Maximum number of records that a query should skip."""
NEAR = 200
"""A query that skips at most this many records does not set an anchor."""


class Depths:
    """Reads a list of events by rank, the position in the list."""

    def __init__(self, database: Database, asked: ListQuery, tally: Tally, feed: ChangeFeed) -> None:
        self._database, self._asked, self._tally, self._feed = database, asked, tally, feed
        self._marks = tally.marks_of(asked.sort)
        self._place = {name: 1 for name, _ in asked.sort}

    async def rows(self, rank: int, limit: int, shown: Mapping[str, int]) -> list[Document]:
        """Return records from a rank on."""
        if self._marks.before(rank).rank < rank - FAR:
            if (left := self._tally.total - rank) <= FAR:
                return await self._last(left, min(left, limit), shown)
            async with self._marks.turn:
                await self._approach(rank)
        return await self._survey(rank, limit, shown)

    async def _last(self, left: int, limit: int, shown: Mapping[str, int]) -> list[Document]:
        """Return the first `limit` of the last `left` records, read backwards from the end."""
        backwards = self._asked._replace(sort=[(name, -sign) for name, sign in self._asked.sort])
        rows = await backwards.rows(self._database[EVENT.plural], left - limit, limit, shown)
        return rows[::-1]

    async def _approach(self, rank: int) -> None:
        """Set anchors, FAR records apart, on the way to a rank."""
        for _ in range(rank // FAR):
            last = self._marks.before(rank)
            if last.rank >= rank - FAR:
                return
            await self._survey(last.rank + FAR, 1, self._place)  # covered by the index
            if self._marks.before(rank).place == last.place:
                return

    async def _survey(self, rank: int, limit: int, shown: Mapping[str, int]) -> list[Document]:
        """Return records from a rank on, and set an anchor at the first unless there is one near."""
        seen, mark = self._tally.seen, self._marks.before(rank)
        skip, any_of = rank - mark.rank, self._marks.beyond(mark)
        if skip <= NEAR:
            return await self._asked.rows(self._database[EVENT.plural], skip, limit, shown, any_of)
        wanted = self._asked.pipeline(skip, limit, {**shown, **self._place}, any_of)
        rows, at = await snapshot(self._database, wanted)
        await self._feed.catch_up()
        with suppress(Unknown):
            moves = self._tally.moves(self._feed, seen)
            if rows and self._tally.hears(self._feed):
                self._marks.learn(mark, skip, rows[0], at, moves)
        return rows
