"""How many events a list has: counted once, then carried along with every write."""

from __future__ import annotations

from collections import OrderedDict
from functools import partial

from bson import Timestamp

from service.store.asked import Condition, key_of
from service.store.bases import Bases
from service.store.client import Database
from service.store.days import split
from service.store.joint import Joint
from service.store.news import News
from service.store.snapshots import Row, snapshot
from service.store.tally import Tally, keep

TRIES = 3
KEPT = 1000
"""Lists whose totals a process carries along."""
NEVER = Timestamp(0, 0)
"""Before any change."""


class Totals:
    """Tallies by what was asked for."""

    def __init__(self, database: Database, news: News) -> None:
        self._database = database
        self._news = news
        self._tallies: OrderedDict[bytes, Tally] = OrderedDict()
        self._bases = Bases(database, news)
        self._joint = Joint[Tally]()

    async def of(self, conditions: list[Condition]) -> Tally:
        """The tally of a list, exact at the time of asking."""
        key = key_of(conditions)
        for _ in range(TRIES):
            tally = self._tallies.get(key) or await self._joint.do(key, partial(self._count, key, conditions))
            await self._news.catch_up()
            if tally.hears(self._news):
                keep(self._tallies, key, tally, KEPT)
                break
            self._tallies.pop(key, None)
        return tally  # after as many counts as that, other processes write faster than we can count

    async def _count(self, key: bytes, conditions: list[Condition]) -> Tally:
        """It is kept even when those who asked have given up: the next one need not begin again."""
        await self._news.catch_up()  # the stream must be open before the moment of the count
        tally = await self._by_days(conditions) or await self._read(conditions, [conditions])
        keep(self._tallies, key, tally, KEPT)
        return tally

    async def _by_days(self, conditions: list[Condition]) -> Tally | None:
        """The tally of a stretch of time in a list of which is known how many events each day has."""
        rest, stretch = split(conditions)
        base = await self._bases.of(rest) if stretch else None
        if stretch is None or base is None:
            return None
        tallies, parts = [base], stretch.parts()
        if parts:
            tallies.append(await self._read([*conditions, {"$or": parts}], disjoint(conditions, parts)))
            await self._news.catch_up()
        # Nothing is awaited from here on: both have heard the same.
        if not all(tally.hears(self._news) for tally in tallies) or base.days is None:
            return None
        total = base.days.within(*stretch.days.values()) + sum(tally.total for tally in tallies[1:])
        return Tally(conditions, NEVER, total, self._news.number)

    async def _read(self, conditions: list[Condition], parts: list[list[Condition]]) -> Tally:
        """Counts the events of a list, all of its parts at one moment."""
        seen = self._news.oldest
        rows, at = await snapshot(self._database, *map(counting, parts))
        return Tally(conditions, at, sum(row["n"] for row in rows), seen)


def counting(conditions: list[Condition]) -> list[Row]:
    return [{"$match": {"$and": conditions}}, {"$count": "n"}]


def disjoint(conditions: list[Condition], parts: list[Condition]) -> list[list[Condition]]:
    """The conditions of each part, less the parts before it."""
    return [
        [*conditions, part, *({"$nor": [before]} for before in parts[:at])] for at, part in enumerate(parts)
    ]
