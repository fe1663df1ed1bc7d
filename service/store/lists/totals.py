"""Totals of long lists of events: one histogram for each filter, kept current by the change feed."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import NamedTuple

import pymongo
from bson import Timestamp
from cachetools import LRUCache
from pymongo.errors import PyMongoError

from schemas.kinds.event import EVENT
from schemas.site import Site
from service.changes.change import Change
from service.changes.feed import ChangeFeed
from service.mongo.client import Database
from service.mongo.coalescing import SingleFlight
from service.mongo.conditions import matches
from service.store.lists.histograms import Histogram, Slots, Window, window_of
from service.store.lists.query import ListQuery, can_evaluate

MAX_COUNTED, MAX_COUNTED_FIRST, FIRST_USES = 20, 100_000, 4
"""Lists of at most 20 events are counted at every request, those of at most 100,000 the first four times that
their filter is used. Longer ones get a histogram, which costs as much as counting a few times: with one at
the second use, different places are a fifth slower, and lists while events change a tenth."""
MAX_FILTERS = 10_000
"""Number of filters whose uses are counted."""
BUILD_SECONDS = 60
"""Timeout for building a histogram: that of a long list reads a large part of an index."""
MAX_BUILDING = 3
"""Histograms that are built at a time: each takes a thread of the driver and a core of MongoDB."""
MAX_WAIT_SECONDS = 3.0
"""How long a request waits for a histogram before it has its own range counted by MongoDB."""
MAX_PAIRS = 200_000
"""Maximum number of pairs of slots in one histogram; a batch of MongoDB has room for more."""
MAX_FILTER_BYTES = 16_384
"""Lists with a longer filter, such as a circle with thousands of venues, are always counted by MongoDB."""
CACHED_PAIRS = 2_000_000
"""Maximum number of pairs of slots in all histograms of a process, 16 bytes each."""


class NoHistogram(Exception):
    """A histogram would be too large, takes long to build, or cannot be kept current."""


class LiveHistogram(NamedTuple):
    """The histogram of a filter, and from where on changes have to be applied to it."""

    histogram: Histogram
    query: ListQuery
    """A list with this filter."""
    at: Timestamp
    """The time of the snapshot that it was built from."""
    next_change: int
    """Number of the first change that is not applied yet."""


class Totals:
    """The histograms of a process, by filter without dates."""

    def __init__(self, database: Database, site: Site, feed: ChangeFeed) -> None:
        self._database, self._feed = database, feed
        self._slots = Slots(site.zone)
        self._live: LRUCache[bytes, LiveHistogram] = LRUCache(
            CACHED_PAIRS, getsizeof=lambda live: len(live.histogram) + 300 + len(live.query.encoded) // 4
        )
        self._uses: LRUCache[bytes, int] = LRUCache(MAX_FILTERS)
        self._building, self._build_slots = SingleFlight[bytes, None](), asyncio.Semaphore(MAX_BUILDING)
        self.hits = self.misses = 0

    def window(self, query: ListQuery) -> Window:
        """The window of a list whose filter can have a histogram."""
        return window_of(query.dates or (), self._slots)

    def can_build(self, query: ListQuery) -> bool:
        """Whether the filter of a list can have a histogram."""
        if query.dates is None or len(query.encoded) > MAX_FILTER_BYTES:
            return False
        return self.is_known(query) or can_evaluate(query.conditions)

    def is_known(self, query: ListQuery) -> bool:
        """Whether there is a histogram of this filter, which may be outdated."""
        return query.key in self._live

    def max_counted(self, query: ListQuery) -> int:
        """Note that the filter of a list is used, and return up to which total the list is counted."""
        self._uses[query.key] = uses = self._uses.get(query.key, 0) + 1
        return MAX_COUNTED_FIRST if uses <= FIRST_USES else MAX_COUNTED

    def current(self, query: ListQuery) -> Histogram | None:
        """The histogram of a filter, as of the position of the feed; None if it cannot be kept current."""
        if (live := self._live.pop(query.key, None)) is None:
            return None
        changes = self._feed.events_since(live.next_change)
        if changes is None or not all(apply(live, change) for change in changes):
            return None
        self._live[query.key] = live._replace(next_change=self._feed.next_event)
        return live.histogram

    async def histogram(self, query: ListQuery) -> Histogram:
        """The histogram of a filter at the position of the feed, built if necessary; raises NoHistogram if
        that takes long or fails."""
        if (found := self.current(query)) is not None:
            self.hits += 1
            return found
        self.misses += 1
        building = self._building.run(query.key, partial(self._build, query))
        try:
            await asyncio.wait_for(building, MAX_WAIT_SECONDS)
            await self._feed.catch_up()
        except (TimeoutError, PyMongoError):
            raise NoHistogram from None
        if (found := self.current(query)) is None:
            raise NoHistogram
        return found

    async def _build(self, query: ListQuery) -> None:
        """Build and keep a histogram. It is kept even if all callers have gone: the next one can use it."""
        async with self._build_slots:
            self._live[query.key] = await self._read(query)

    async def _read(self, query: ListQuery) -> LiveHistogram:
        first = self._feed.next_event  # before the snapshot is taken, so that no change is missing
        by_key = {"$group": {"_id": self._slots.key_expression(), "n": {"$sum": 1}}}
        # One document with two arrays is decoded several times faster than one for each key.
        arrays = {"$group": {"_id": None, "keys": {"$push": "$_id"}, "counts": {"$push": "$n"}}}
        found = [{"$match": {"$and": query.conditions}}, by_key, {"$limit": MAX_PAIRS + 1}]
        with pymongo.timeout(BUILD_SECONDS):
            reply = await self._database.command(
                "aggregate",
                EVENT.plural,
                pipeline=[*found, {"$sort": {"_id": 1}}, arrays],
                cursor={},
                readConcern={"level": "snapshot"},
            )
        (row,) = reply["cursor"]["firstBatch"] or ({"keys": [], "counts": []},)
        if len(row["keys"]) > MAX_PAIRS:
            raise NoHistogram
        histogram = Histogram(self._slots, row["keys"], row["counts"])
        return LiveHistogram(histogram, query, reply["cursor"]["atClusterTime"], first)


def apply(live: LiveHistogram, change: Change) -> bool:
    """Apply a change to the histogram of a filter; return False if the change is not known well enough."""
    query = live.query
    if change.touched is not None and not change.touched & query.fields:
        return True
    if change.new is not None and any(change.links.isdisjoint(wanted) for wanted in query.links):
        return True  # most changes: different lists are a fifth faster while events change
    if change.at <= live.at:
        return True
    if change.new is None:
        return False
    for event, step in ((change.was, -1), (change.new, 1)):
        if event and matches(query.conditions, event):
            live.histogram.add(event, step)
    return True
