"""List pages: the records that match a query and that the caller may see, and the total of the list."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.caller import Caller
from schemas.errors import PageNotFound, Problems, Unavailable
from schemas.event import EVENT
from schemas.kind import Document, Kind, load
from schemas.site import Site
from service.store.change_feed import ChangeFeed
from service.store.lists.event_filters import event_list
from service.store.lists.histograms import END, START, Histogram, Window
from service.store.lists.other_filters import post_list, term_list
from service.store.lists.query import ListQuery
from service.store.lists.resolver import FilterResolver
from service.store.lists.totals import Totals
from service.store.mongo.client import Database, aggregate, collections
from service.store.mongo.coalescing import Batcher
from service.store.mongo.loaders import HEAD_FIELDS
from service.store.search import Vocabulary

MAX_COUNTED = 20
"""Lists of at most this many records are counted for every page; longer ones get a histogram."""
MAX_SKIPPED = 1000
"""A page behind at most this many records is found by skipping them."""
MAX_ATTEMPTS = 10
MAX_IN_FLIGHT, MAX_BATCH = 2, 8
"""Concurrent commands for pages, and pages read by one of them."""
NO_PROBLEMS = Problems()
Filters = Callable[[FilterResolver, Kind, Mapping[str, Any], Caller, Problems], Awaitable[ListQuery]]


def filters_of(kind: Kind) -> Filters:
    """The function that translates the query parameters of a kind."""
    if kind is EVENT:
        return event_list
    return post_list if kind.is_post else term_list


@dataclass(frozen=True)
class Page:
    """One page of a list, and the total of the list."""

    heads: list[Document]
    total: int


@dataclass(frozen=True, eq=False)
class Read:
    """A pipeline to run on a collection."""

    plural: str
    pipeline: list[Document]


class Lists:
    """Finds pages of lists."""

    def __init__(self, database: Database, site: Site, feed: ChangeFeed, vocabulary: Vocabulary) -> None:
        self._site, self._feed = site, feed
        self._resolver = FilterResolver(database, site, feed, vocabulary)
        self._totals = Totals(database, site, feed)
        self._collection = collections(database)
        self._reads = Batcher[Read, list[Document]](self._read_together, MAX_IN_FLIGHT, MAX_BATCH)

    async def query(
        self, kind: Kind, query: Mapping[str, Any], caller: Caller, problems: Problems = NO_PROBLEMS
    ) -> ListQuery:
        """Translate query parameters; raises InvalidFields with all invalid ones, and those in `problems`."""
        return await filters_of(kind)(self._resolver, kind, query, caller, Problems(problems))

    async def page(
        self, kind: Kind, query: Mapping[str, Any], caller: Caller, problems: Problems = NO_PROBLEMS
    ) -> Page:
        """Find a page. Records that filters name may come from a cache: if one of them turns out to have
        changed, the page is read again."""
        for _ in range(MAX_ATTEMPTS):
            position = self._feed.last
            asked = await self.query(kind, query, caller, problems)
            page = await self._page(kind, query, asked)
            if not any(self._feed.has_changed(plural, position) for plural in asked.resolved):
                return found(page, kind, query)
        raise Unavailable

    async def warm(self, caller: Caller) -> None:
        """Build the histogram of the default list of events if it is long."""
        await self.page(EVENT, load(EVENT.query_schema, {}, self._site), caller)

    async def _page(self, kind: Kind, query: Mapping[str, Any], asked: ListQuery) -> Page:
        skip, limit = (query["page"] - 1) * query["per_page"], query["per_page"]
        if query.get("orderby") == "include" and query.get("include"):
            whole = await self._counted(kind, asked, 0, len(query["include"]))
            ids, is_reversed = query["include"], query.get("order") == "desc"
            whole.heads.sort(key=lambda row: ids.index(row["_id"]), reverse=is_reversed)
            return Page(whole.heads[skip : skip + limit], whole.total)
        return await self._slice(kind, asked, skip, limit)

    async def _slice(self, kind: Kind, asked: ListQuery, skip: int, limit: int) -> Page:
        if (window := self._totals.window(asked)) is None:
            return await self._counted(kind, asked, skip, limit)
        if skip <= MAX_SKIPPED and self._totals.is_known(asked):
            rows = await self._read(kind, asked.page(skip, limit, HEAD_FIELDS))
            if histogram := self._totals.current(asked):
                return Page(rows, histogram.total(window))
        elif skip < MAX_COUNTED and not self._totals.is_known(asked):
            page = await self._counted(kind, asked, skip, limit, MAX_COUNTED + 1)
            if page.total <= MAX_COUNTED:
                return page
            if histogram := await self._totals.histogram(asked):
                return Page(page.heads, histogram.total(window))
        if histogram := await self._totals.histogram(asked):
            return await self._deep(kind, asked, skip, limit, histogram, window)
        return await self._counted(kind, asked, skip, limit)

    async def _counted(
        self, kind: Kind, asked: ListQuery, skip: int, limit: int, max_total: int | None = None
    ) -> Page:
        """Find and count in one command; the total is `max_total` if there are more."""
        few = [{"$limit": max_total}] if max_total else []
        count = [{"$match": asked.filter}, *few, {"$count": "total"}]
        union = {"$unionWith": {"coll": kind.plural, "pipeline": count}}
        page = [*asked.page(skip, limit, HEAD_FIELDS), union]
        rows = await (self._aggregate(kind, asked, page) if max_total is None else self._read(kind, page))
        total = rows.pop()["total"] if rows and "total" in rows[-1] else 0
        return Page(rows, total)

    async def _deep(
        self, kind: Kind, asked: ListQuery, skip: int, limit: int, histogram: Histogram, window: Window
    ) -> Page:
        """Find a page of a long list from the beginning of the slot that it is in, or from the nearer end."""
        total, (field, sign) = histogram.total(window), asked.sort[0]
        if skip >= total:
            return Page([], total)
        if skip > MAX_SKIPPED and field in (START, END):
            slot, before = histogram.locate(window, field, skip, is_descending=sign < 0)
            edge = histogram.slots.begin(slot if sign > 0 else slot + 1)
            near = asked.within({field: {"$gte" if sign > 0 else "$lt": edge}})
            return Page(await self._rows(kind, near, skip - before, limit), total)
        if skip > total // 2:
            limit = min(limit, total - skip)
            rows = await self._rows(kind, asked.backwards, total - skip - limit, limit)
            return Page(rows[::-1], total)
        return Page(await self._rows(kind, asked, skip, limit), total)

    async def _rows(self, kind: Kind, asked: ListQuery, skip: int, limit: int) -> list[Document]:
        return await self._aggregate(kind, asked, asked.page(skip, limit, HEAD_FIELDS))

    async def _aggregate(self, kind: Kind, asked: ListQuery, pipeline: list[Document]) -> list[Document]:
        options = {"hint": asked.hint} if asked.hint else {}
        rows = await aggregate(self._collection(kind.plural), pipeline, **options)
        await self._feed.catch_up()
        return rows

    async def _read(self, kind: Kind, pipeline: list[Document]) -> list[Document]:
        """Run a pipeline that takes little time, together with those of concurrent requests: most of the time
        that a command needs is the driver's."""
        rows = await self._reads.load(Read(kind.plural, pipeline))
        await self._feed.catch_up()
        return rows or []

    async def _read_together(self, reads: Sequence[Read]) -> dict[Read, list[Document]]:
        first, *others = [[*read.pipeline, {"$set": {"part": at}}] for at, read in enumerate(reads)]
        unions = [
            {"$unionWith": {"coll": read.plural, "pipeline": pipeline}}
            for read, pipeline in zip(reads[1:], others, strict=True)
        ]
        found: dict[Read, list[Document]] = {read: [] for read in reads}
        for row in await aggregate(self._collection(reads[0].plural), [*first, *unions]):
            found[reads[row.pop("part")]].append(row)
        return found


def found(page: Page, kind: Kind, query: Mapping[str, Any]) -> Page:
    """The page if it exists; the first one always does."""
    if (query["page"] - 1) * query["per_page"] < page.total:
        return page
    if query["page"] > 1:
        raise PageNotFound(kind=kind.name)
    return Page([], 0)
