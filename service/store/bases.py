"""Lists without their dates, whose days are counted when several stretches of time were asked for."""

from __future__ import annotations

from collections import Counter, OrderedDict
from functools import partial

from service.store.asked import Condition, key_of
from service.store.client import Database
from service.store.days import Days, grouped
from service.store.joint import Joint
from service.store.news import News
from service.store.snapshots import TooMany, snapshot
from service.store.tally import Tally, keep

SEVERAL = 8
"""Stretches of a list that are counted by themselves: of most lists nobody asks for more."""
KEPT = 20
"""Lists whose days a process carries along."""
WATCHED = 1000
"""Lists whose stretches it counts."""
NO_MORE = -(10**9)


class Bases:
    """Tallies with days."""

    def __init__(self, database: Database, news: News) -> None:
        self._database, self._news = database, news
        self._tallies: OrderedDict[bytes, Tally] = OrderedDict()
        self._asked: Counter[bytes] = Counter()
        self._joint = Joint[Tally]()

    async def of(self, conditions: list[Condition]) -> Tally | None:
        """The tally of a list with its days, if it is worth while to count them."""
        key = key_of(conditions)
        tally = self._tallies.pop(key, None)
        if not tally or not tally.hears(self._news) or not tally.days:
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
        # If it is lost soon, to others who write or to other lists, it is not counted for each stretch.
        self._asked[key] = 0
        return tally

    async def _count(self, conditions: list[Condition]) -> Tally:
        seen = self._news.oldest
        rows, at = await snapshot(self._database, grouped(conditions))
        await self._news.catch_up()  # so that it knows all that was counted
        return Tally(conditions, at, sum(row["n"] for row in rows), seen, Days(rows))
