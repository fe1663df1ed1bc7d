"""List pages: the records that match a query and that the caller may see, and the total of the list."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from schemas.caller import Caller
from schemas.errors import PageNotFound, Problems, Unavailable
from schemas.kind import Document, Kind, load
from schemas.kinds.event import EVENT
from service.changes.feed import ChangeFeed
from service.mongo.client import Database, Result, aggregate, collections
from service.mongo.coalescing import Batcher
from service.mongo.loaders import aggregate_many
from service.store.lists.event_filters import event_list
from service.store.lists.histograms import END, START, Window, lower_bound
from service.store.lists.other_filters import post_list, term_list
from service.store.lists.query import MAX_SKIP, ListQuery
from service.store.lists.resolver import FilterResolver
from service.store.lists.scans import Scan, scan
from service.store.lists.totals import Totals

MAX_SKIPPED = 1000
"""A page behind at most this many records is found by skipping them."""
MAX_ATTEMPTS = 10
MAX_BATCH, SLOW_SECONDS = 16, 0.05
"""Pages read by one command, and after which time further pages do not wait for it."""
NO_PROBLEMS = Problems()


class Page(NamedTuple):
    """One page of a list, and the total of the list."""

    heads: list[Document]
    total: int


class Lists:
    """Finds pages of lists."""

    def __init__(self, database: Database, feed: ChangeFeed, resolver: FilterResolver) -> None:
        self._site, self._feed, self._resolver = resolver.site, feed, resolver
        self.totals = Totals(database, resolver.site, feed)
        self._collection = collections(database)
        self.batcher = Batcher[ListQuery, list[Document]](
            self._read_together, max_batch=MAX_BATCH, slow_seconds=SLOW_SECONDS
        )

    async def query(
        self, kind: Kind, query: Mapping[str, Any], caller: Caller, problems: Problems = NO_PROBLEMS
    ) -> ListQuery:
        """Translate query parameters; raises InvalidFields with all invalid ones, and those in `problems`."""
        translate = event_list if kind is EVENT else post_list if kind.is_post else term_list
        return await translate(self._resolver, kind, query, caller, Problems(problems))

    async def page(
        self, kind: Kind, query: Mapping[str, Any], caller: Caller, problems: Problems = NO_PROBLEMS
    ) -> Page:
        page = await self.read(kind, query, caller, problems, lambda asked: self._page(query, asked))
        return existing(page, kind, query)

    async def read(
        self,
        kind: Kind,
        query: Mapping[str, Any],
        caller: Caller,
        problems: Problems,
        read: Callable[[ListQuery], Awaitable[Result]],
    ) -> Result:
        """Translate query parameters, and run a read that ends with `feed.catch_up`. Records that filters
        name may come from a cache: if one of them turns out to have changed, all is done again."""

        async def attempt() -> Result:
            for _ in range(MAX_ATTEMPTS):
                position = self._feed.position
                asked = await self.query(kind, query, caller, problems)
                result = await read(asked)
                if not any(self._feed.has_changed(plural, position) for plural in asked.resolved):
                    return result
            raise Unavailable

        return await self._feed.confirm(attempt)

    async def scan(
        self,
        kind: Kind,
        queries: Iterable[Mapping[str, Any]],
        caller: Caller,
        problems: Problems,
        max_records: int,
    ) -> Scan:
        """Find the records of whole lists, without their content, unless they are more than `max_records`."""

        async def attempt() -> Scan:
            lists = [await self.query(kind, query, caller, problems) for query in queries]
            return await scan(self._collection(kind.plural), lists, max_records)

        return await self._feed.confirm(attempt)

    async def scan_all(self, kind: Kind) -> Scan:
        """Find all records of a kind, in the order of their ids."""
        everything = ListQuery(kind.plural, [], [("_id", 1)])
        return await scan(self._collection(kind.plural), [everything], MAX_SKIP)

    async def warm(self, caller: Caller) -> None:
        """Build the histogram of the default list of events if it is long."""
        await self.page(EVENT, load(EVENT.query_schema, {}, self._site), caller)

    async def _page(self, query: Mapping[str, Any], asked: ListQuery) -> Page:
        skip, limit = (query["page"] - 1) * query["per_page"], query["per_page"]
        if query.get("orderby") == "include" and (ids := query.get("include")):
            whole = await self._counted(asked.slice(0, len(ids)))
            whole.heads.sort(key=lambda row: ids.index(row["_id"]), reverse=query.get("order") == "desc")
            return Page(whole.heads[skip : skip + limit], whole.total)
        asked = await self._bounded(asked.slice(skip, limit))
        if (window := self.totals.window(asked)) is None:
            return await self._counted(asked)
        if skip > MAX_SKIPPED:
            return await self._deep(asked, window)
        if self.totals.is_known(asked):
            heads = await self._read_batched(asked)
        else:
            most = self.totals.max_counted(asked)
            heads, total = split(await self._read_batched(asked.counted(most + 1)))
            if total <= most:
                return Page(heads, total)
        histogram = await self.totals.histogram(asked)
        return Page(heads, histogram.total(window)) if histogram else await self._counted(asked)

    async def _bounded(self, asked: ListQuery) -> ListQuery:
        """If only the end of events has a lower bound, as in a list of all that have not ended, add the one
        on their start that follows from it: the index would be read from the first event of all."""
        dates = asked.dates or []
        end = lower_bound(dates, END)
        if end <= lower_bound(dates, START) or not self.totals.can_build(asked):
            return asked
        await self._feed.catch_up()
        if (histogram := await self.totals.histogram(asked)) is None:
            return asked
        return replace(asked, dates=[*dates, {START: {"$gte": histogram.earliest_start(end)}}])

    async def _deep(self, asked: ListQuery, window: Window) -> Page:
        """Find a page of a long list from the beginning of the slot that it is in, or from the nearer end."""
        await self._feed.catch_up()
        if (histogram := await self.totals.histogram(asked)) is None:
            return await self._counted(asked)
        total, (field, sign), skip = histogram.total(window), asked.sort[0], asked.skip
        if skip >= total:
            return Page([], total)
        if field in (START, END):
            slot, before = histogram.locate(window, field, skip, is_descending=sign < 0)
            edge = histogram.slots.begin(slot if sign > 0 else slot + 1)
            near = asked.within({field: {"$gte" if sign > 0 else "$lt": edge}})
            return Page(await self._read(near.slice(skip - before, asked.limit)), total)
        if skip > total // 2:
            limit = min(asked.limit, total - skip)
            return Page((await self._read(asked.backwards.slice(total - skip - limit, limit)))[::-1], total)
        return Page(await self._read(asked), total)

    async def _counted(self, asked: ListQuery) -> Page:
        return split(await self._read(asked.counted()))

    async def _read(self, asked: ListQuery) -> list[Document]:
        options = {"hint": asked.hint} if asked.hint else {}
        rows = await aggregate(self._collection(asked.plural), asked.pipeline, **options)
        await self._feed.catch_up()
        return rows

    async def _read_batched(self, asked: ListQuery) -> list[Document]:
        """Read a page that takes little time, together with those of concurrent requests: most of the time
        that a command needs is the driver's."""
        rows = await self.batcher.load(asked)
        await self._feed.catch_up()
        return rows or []

    async def _read_together(self, pages: Sequence[ListQuery]) -> dict[ListQuery, list[Document]]:
        found: dict[ListQuery, list[Document]] = {page: [] for page in pages}
        pipelines = [(page.plural, page.pipeline) for page in pages]
        for at, row in await aggregate_many(self._collection, pipelines):
            found[pages[at]].append(row)
        return found


def split(rows: list[Document]) -> Page:
    """The page of a counted list, whose last row is the total unless that is 0."""
    total = rows.pop()["total"] if rows and "total" in rows[-1] else 0
    return Page(rows, total)


def existing(page: Page, kind: Kind, query: Mapping[str, Any]) -> Page:
    """The page if it exists; the first one always does."""
    if (query["page"] - 1) * query["per_page"] < page.total:
        return page
    if query["page"] > 1:
        raise PageNotFound(kind=kind.name)
    return Page([], 0)
