"""Page finder: reads one page of a list, and computes or counts the total of the list."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from schemas.kind import Document
from schemas.results import Page
from service.changes.feed import ChangeFeed
from service.mongo.client import Database, aggregate, collections
from service.mongo.coalescing import Batcher
from service.mongo.loaders import GROUPED_READS, aggregate_many
from service.store.lists.histograms import END, START, Window, lower_bound
from service.store.lists.query import ListQuery
from service.store.lists.totals import NoHistogram, Totals

MAX_SKIPPED = 1000
"""A page behind at most this many records is found by skipping them."""


class PageFinder:
    """Finds pages; each read ends with `feed.catch_up`."""

    def __init__(self, database: Database, feed: ChangeFeed, totals: Totals) -> None:
        self._feed, self._totals, self._collection = feed, totals, collections(database)
        self.batcher = Batcher[ListQuery, list[Document]](self._read_together, **GROUPED_READS)

    async def find(self, query: ListQuery) -> Page:
        """The page, with a total from the histogram of the filter if the list is long and can have one."""
        with suppress(NoHistogram):  # counted below
            if self._totals.can_build(query):
                return await self._find(query)
        return await self.count(query)

    async def _find(self, query: ListQuery) -> Page:
        """The page, counted if the list is short; raises NoHistogram if it is long and cannot have one."""
        window = self._totals.window(query)
        if query.skip > MAX_SKIPPED:
            return await (self.count(query) if window.remainder else self._deep(query, window))
        if not self._totals.is_known(query):
            most = self._totals.max_counted(query)
            page = split(await self._read_batched(query.counted(most + 1)))
            if page.total <= most:
                return page
            await self._totals.histogram(query)  # built first: the page would become old meanwhile
        return await self._find_with_histogram(await self._bounded(query), window)

    async def _find_with_histogram(self, query: ListQuery, window: Window) -> Page:
        """The page, with the events of whole slots from the histogram; only the others are counted."""
        next_event = self._feed.next_event
        counted = query.counted(any_of=window.remainder) if window.remainder else query
        page = split(await self._read_batched(counted))
        histogram = await self._totals.histogram(query)
        if window.remainder and self._feed.next_event != next_event:
            return await self.count(query)  # an event may have moved from what was counted into a whole slot
        total = page.total + histogram.total(window)
        if not page.heads and query.skip < total:  # the page was read before the list became longer
            return await self.count(query)
        return Page(page.heads, total)

    async def count(self, query: ListQuery) -> Page:
        """The page, and the total as counted by MongoDB."""
        return split(await self._read(query.counted()))

    async def _bounded(self, query: ListQuery) -> ListQuery:
        """If only the end of events has a lower bound, as in a list of all that have not ended, add the one
        on their start that follows from it: the index would be read from the first event of all."""
        dates = query.dates or []
        end = lower_bound(dates, END)
        if end <= lower_bound(dates, START):
            return query
        await self._feed.catch_up()
        histogram = await self._totals.histogram(query)
        return replace(query, dates=[*dates, {START: {"$gte": histogram.earliest_start(end)}}])

    async def _deep(self, query: ListQuery, window: Window) -> Page:
        """Find a page of a long list from the beginning of the slot that it is in, or from the nearer end."""
        await self._feed.catch_up()
        histogram = await self._totals.histogram(query)
        total, (field, sign), skip = histogram.total(window), query.sort[0], query.skip
        if skip >= total:
            return Page([], total)
        if field in (START, END):
            slot, before = histogram.locate(window, field, skip, is_descending=sign < 0)
            edge = histogram.slots.begin(slot if sign > 0 else slot + 1)
            near = query.within({field: {"$gte" if sign > 0 else "$lt": edge}})
            return Page(await self._read(near.slice(skip - before, query.limit)), total)
        if skip > total // 2:
            limit = min(query.limit, total - skip)
            heads = (await self._read(query.backwards.slice(total - skip - limit, limit)))[::-1]
            is_same = (await self._totals.histogram(query)).total(window) == total
            return Page(heads, total) if is_same else await self.count(query)
        return Page(await self._read(query), total)

    async def _read(self, query: ListQuery) -> list[Document]:
        options = {"hint": query.hint} if query.hint else {}
        rows = await aggregate(self._collection(query.plural), query.pipeline, **options)
        await self._feed.catch_up()
        return rows

    async def _read_batched(self, query: ListQuery) -> list[Document]:
        """Read a page that takes little time, together with those of concurrent requests: most of the time
        that a command needs is the driver's."""
        rows = await self.batcher.load(query)
        await self._feed.catch_up()
        return rows or []

    async def _read_together(self, pages: Sequence[ListQuery]) -> dict[ListQuery, list[Document]]:
        pipelines = [(page.plural, page.pipeline) for page in pages]
        return dict(zip(pages, await aggregate_many(self._collection, pipelines), strict=True))


def split(rows: list[Document]) -> Page:
    """The page of a counted list, whose last row is the total unless that is 0."""
    total = rows.pop()["total"] if rows and "total" in rows[-1] else 0
    return Page(rows, total)
