"""Totals of event lists: counted once, then kept current by the change feed."""

from __future__ import annotations

from collections import OrderedDict
from functools import partial

from bson import Timestamp

from service.store.bases import Bases
from service.store.change_feed import ChangeFeed
from service.store.days import split
from service.store.joint import Joint
from service.store.lists.query import Condition, key_of
from service.store.mongo.client import Database
from service.store.mongo.snapshots import Row, snapshot
from service.store.tally import Tally, keep

TRIES = 3
KEPT = 1000
"""Maximum number of running totals that a process keeps."""
NEVER = Timestamp(0, 0)
"""Earlier than any change."""


class Totals:
    """Running totals, by filter."""

    def __init__(self, database: Database, feed: ChangeFeed) -> None:
        self._database = database
        self._feed = feed
        self._tallies: OrderedDict[bytes, Tally] = OrderedDict()
        self._bases = Bases(database, feed)
        self._joint = Joint[Tally]()

    async def of(self, conditions: list[Condition]) -> Tally:
        """The running total of a list, current as of the call."""
        key = key_of(conditions)
        for _ in range(TRIES):
            tally = self._tallies.get(key) or await self._joint.do(key, partial(self._count, key, conditions))
            await self._feed.catch_up()
            if tally.hears(self._feed):
                keep(self._tallies, key, tally, KEPT)
                break
            self._tallies.pop(key, None)
        return tally  # inexact if other processes write faster than this one can count

    async def _count(self, key: bytes, conditions: list[Condition]) -> Tally:
        """Count a list. The total is kept even if all callers are cancelled: the next one can use it."""
        await self._feed.catch_up()  # the change stream must be open before the snapshot
        tally = await self._by_days(conditions) or await self._read(conditions, [conditions])
        keep(self._tallies, key, tally, KEPT)
        return tally

    async def _by_days(self, conditions: list[Condition]) -> Tally | None:
        """The running total of a date range, computed from the day histogram of the list, if there is one."""
        rest, stretch = split(conditions)
        base = await self._bases.of(rest) if stretch else None
        if stretch is None or base is None:
            return None
        tallies, parts = [base], stretch.parts()
        if parts:
            tallies.append(await self._read([*conditions, {"$or": parts}], disjoint(conditions, parts)))
            await self._feed.catch_up()
        # No await from here on, so that both have applied the same changes.
        if not all(tally.hears(self._feed) for tally in tallies) or base.days is None:
            return None
        total = base.days.within(*stretch.days.values()) + sum(tally.total for tally in tallies[1:])
        return Tally(conditions, NEVER, total, self._feed.number)

    async def _read(self, conditions: list[Condition], parts: list[list[Condition]]) -> Tally:
        """Count the events of a list, all parts in one snapshot."""
        seen = self._feed.oldest
        rows, at = await snapshot(self._database, *map(counting, parts))
        return Tally(conditions, at, sum(row["n"] for row in rows), seen)


def counting(conditions: list[Condition]) -> list[Row]:
    return [{"$match": {"$and": conditions}}, {"$count": "n"}]


def disjoint(conditions: list[Condition], parts: list[Condition]) -> list[list[Condition]]:
    """The conditions of each part, without the parts before it."""
    return [
        [*conditions, part, *({"$nor": [before]} for before in parts[:at])] for at, part in enumerate(parts)
    ]
