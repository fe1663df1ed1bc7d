"""Day histograms of lists without their date filters, built once several date ranges were requested."""

from __future__ import annotations

from collections import Counter, OrderedDict
from functools import partial

from service.store.change_feed import ChangeFeed
from service.store.days import Days, grouped
from service.store.joint import Joint
from service.store.lists.query import Condition, key_of
from service.store.mongo.client import Database
from service.store.mongo.snapshots import TooMany, snapshot
from service.store.tally import Tally, keep

SEVERAL = 8
"""Date ranges of a list that are counted individually before a histogram is built: most need no more."""
KEPT = 20
"""Maximum number of histograms that a process keeps."""
WATCHED = 1000
"""Maximum number of lists for which a process counts requests."""
NO_MORE = -(10**9)
"""Request count of a list that has too many days for a histogram: it never reaches the threshold."""


class Bases:
    """Running totals with day histograms, by filter."""

    def __init__(self, database: Database, feed: ChangeFeed) -> None:
        self._database, self._feed = database, feed
        self._tallies: OrderedDict[bytes, Tally] = OrderedDict()
        self._asked: Counter[bytes] = Counter()
        self._joint = Joint[Tally]()

    async def of(self, conditions: list[Condition]) -> Tally | None:
        """Return a list's running total with its histogram; None if it is not worth building."""
        key = key_of(conditions)
        tally = self._tallies.pop(key, None)
        if not tally or not tally.hears(self._feed) or not tally.days:
            tally = await self._counted(key, conditions) if self._is_asked_often(key) else None
        if tally:
            keep(self._tallies, key, tally, KEPT)
        return tally

    def _is_asked_often(self, key: bytes) -> bool:
        if len(self._asked) > WATCHED:
            self._asked.clear()
        self._asked[key] += 1
        return self._asked[key] > SEVERAL

    async def _counted(self, key: bytes, conditions: list[Condition]) -> Tally | None:
        try:
            tally = await self._joint.do(key, partial(self._count, conditions))
        except TooMany:
            self._asked[key] = NO_MORE
            return None
        # Start over: if it is soon lost to unknown changes or evicted, it is not rebuilt for every request.
        self._asked[key] = 0
        return tally

    async def _count(self, conditions: list[Condition]) -> Tally:
        seen = self._feed.oldest
        rows, at = await snapshot(self._database, grouped(conditions))
        await self._feed.catch_up()  # read the feed up to the snapshot
        return Tally(conditions, at, sum(row["n"] for row in rows), seen, Days(rows))
