"""How many events a list has: counted once, then carried along with every write."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import bson
import pymongo
from bson import Timestamp

from schemas.event import EVENT
from service.store.asked import Condition
from service.store.client import Database
from service.store.marks import Marks
from service.store.matching import Facts, Unknown, fields_of, matches
from service.store.news import Change, News

GONE = -1
TRIES = 3
KEPT = 1000
"""Lists whose totals a process carries along."""
PATIENCE = 60
"""Seconds that a count may take: the first one of a long list reads its index from disk."""


@dataclass
class Tally:
    """The length of one list at the time of the last change that it has heard of."""

    conditions: list[Condition]
    at: Timestamp
    total: int
    seen: int
    """Number of the first change that it has not heard of."""
    marks: dict[tuple[str, int], Marks] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._fields = fields_of(self.conditions)

    def marks_of(self, sort: list[tuple[str, int]]) -> Marks:
        return self.marks.setdefault(sort[0], Marks(*sort[0]))

    def hears(self, news: News) -> bool:
        """Takes in what is new. False: it cannot be told without counting again."""
        if self.seen >= news.oldest:
            changes, self.seen = news.since(self.seen), news.number
            if all(self._takes(change) for change in changes if change.at > self.at):
                return True
        self.seen = GONE
        return False

    def _takes(self, change: Change) -> bool:
        orders = {name for name, _ in self.marks}
        if change.touched is not None and not change.touched & (self._fields | orders):
            return True
        if not change.is_known:
            self.marks.clear()
            return change.touched is not None and not change.touched & self._fields
        try:
            was, now = self._has(change.old), self._has(change.new)
        except Unknown:
            return False
        self.total += now - was
        for marks in self.marks.values():
            marks.shift(change.old if was else None, -1)
            marks.shift(change.new if now else None, 1)
        return True

    def _has(self, facts: Facts | None) -> bool:
        return facts is not None and matches(self.conditions, facts)


class Totals:
    """Tallies by what was asked for; the least recently asked for go first."""

    def __init__(self, database: Database, news: News) -> None:
        self._database = database
        self._news = news
        self._tallies: OrderedDict[bytes, Tally] = OrderedDict()
        self._counting: dict[bytes, asyncio.Task[Tally]] = {}

    async def of(self, conditions: list[Condition]) -> Tally:
        """The tally of a list, exact at the time of asking."""
        key = bson.encode({"": conditions})
        for _ in range(TRIES):
            tally = self._tallies.get(key) or await self._counted(key, conditions)
            await self._news.catch_up()
            if tally.hears(self._news):
                self._keep(key, tally)
                break
            self._tallies.pop(key, None)
        return tally  # after as many counts as that, other processes write faster than we can count

    def _keep(self, key: bytes, tally: Tally) -> None:
        self._tallies[key] = tally
        self._tallies.move_to_end(key)
        if len(self._tallies) > KEPT:
            self._tallies.popitem(last=False)

    async def _counted(self, key: bytes, conditions: list[Condition]) -> Tally:
        """Counts; whoever asks meanwhile waits for the same count."""
        if (task := self._counting.get(key)) is None:
            task = self._counting[key] = asyncio.create_task(self._count(key, conditions))
            task.add_done_callback(lambda _: self._counting.pop(key))
        return await asyncio.shield(task)

    async def _count(self, key: bytes, conditions: list[Condition]) -> Tally:
        """Goes on and is kept when those who asked have given up: the next one need not begin again."""
        await self._news.catch_up()  # the stream must be open before the moment of the count
        seen = self._news.oldest
        pipeline: list[dict[str, Any]] = [{"$match": {"$and": conditions}}, {"$count": "n"}]
        with pymongo.timeout(PATIENCE):
            said = await self._database.command(
                "aggregate", EVENT.plural, pipeline=pipeline, cursor={}, readConcern={"level": "snapshot"}
            )
        cursor = said["cursor"]
        total = cursor["firstBatch"][0]["n"] if cursor["firstBatch"] else 0
        tally = Tally(conditions, cursor["atClusterTime"], total, seen)
        self._keep(key, tally)
        return tally
