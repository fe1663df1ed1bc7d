"""List pages: the records that match a query and that the caller may see, and the total of the list."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from schemas.caller import Caller
from schemas.errors import NO_PROBLEMS, PageNotFound, Problems, Unavailable
from schemas.kind import Kind, load
from schemas.kinds.event import EVENT
from schemas.results import Page
from service.changes.feed import ChangeFeed
from service.mongo.client import Database, Result, collections
from service.store.lists.event_filters import event_list
from service.store.lists.other_filters import post_list, term_list
from service.store.lists.page_finder import PageFinder
from service.store.lists.query import MAX_RECORDS, ListQuery
from service.store.lists.resolver import FilterResolver
from service.store.lists.scans import Scan, scan
from service.store.lists.totals import Totals

MAX_ATTEMPTS = 10
MAX_FOUND_BY_WORDS = 1_000
"""A search that finds more records is faster if the list is read in its order."""


class Lists:
    """Finds pages of lists."""

    def __init__(self, database: Database, feed: ChangeFeed, resolver: FilterResolver) -> None:
        self._site, self._feed, self._resolver = resolver.site, feed, resolver
        self.totals = Totals(database, resolver.site, feed)
        self.finder, self._collection = PageFinder(database, feed, self.totals), collections(database)

    async def translate(
        self, kind: Kind, params: Mapping[str, Any], caller: Caller, problems: Problems = NO_PROBLEMS
    ) -> ListQuery:
        """Translate query parameters; raises InvalidFields with all invalid ones, and those in `problems`."""
        translate = event_list if kind is EVENT else post_list if kind.is_post else term_list
        return await translate(self._resolver, kind, params, caller, Problems(problems))

    async def page(
        self, kind: Kind, params: Mapping[str, Any], caller: Caller, problems: Problems = NO_PROBLEMS
    ) -> Page:
        page = await self.read(kind, params, caller, problems, lambda query: self._page(params, query))
        return existing(page, kind, params)

    async def read(
        self,
        kind: Kind,
        params: Mapping[str, Any],
        caller: Caller,
        problems: Problems,
        read: Callable[[ListQuery], Awaitable[Result]],
    ) -> Result:
        """Translate query parameters, and run a read that ends with `feed.catch_up`. Records that filters
        name may come from a cache: if one of their kind turns out to have changed, and the query is another
        one now, all is done again."""

        async def attempt() -> Result:
            position, query = self._feed.position, await self.translate(kind, params, caller, problems)
            for _ in range(MAX_ATTEMPTS):
                result = await read(query)
                if not any(self._feed.has_changed(plural, position) for plural in query.resolved):
                    return result
                before, position = query, self._feed.position
                query = await self.translate(kind, params, caller, problems)
                if query.encoded == before.encoded:
                    return result
            raise Unavailable

        return await self._feed.confirm(attempt)

    async def scan(
        self,
        kind: Kind,
        many_params: Iterable[Mapping[str, Any]],
        caller: Caller,
        problems: Problems,
        max_records: int,
    ) -> Scan:
        """Find the records of whole lists, without their content, unless they are more than `max_records`."""

        async def attempt() -> Scan:
            lists = [await self.translate(kind, params, caller, problems) for params in many_params]
            return await asyncio.to_thread(scan, self._collection(kind.plural), lists, max_records)

        return await self._feed.confirm(attempt)

    async def scan_all(self, kind: Kind) -> Scan:
        """Find all records of a kind, in the order of their ids."""
        everything = ListQuery(kind.plural, [], [("_id", 1)])
        return await asyncio.to_thread(scan, self._collection(kind.plural), [everything], MAX_RECORDS)

    async def warm(self, caller: Caller) -> None:
        """Build the histogram of the default list of events if it is long."""
        await self.page(EVENT, load(EVENT.query_schema, {}, self._site), caller)

    async def _page(self, params: Mapping[str, Any], query: ListQuery) -> Page:
        skip, limit = (params["page"] - 1) * params["per_page"], params["per_page"]
        query = await self._with_hint(query)
        if params.get("orderby") == "include" and (ids := params.get("include")):
            whole = await self.finder.count(query.slice(0, len(ids)))
            whole.heads.sort(key=lambda row: ids.index(row["_id"]), reverse=params.get("order") == "desc")
            return Page(whole.heads[skip : skip + limit], whole.total)
        return await self.finder.find(query.slice(skip, limit))

    async def _with_hint(self, query: ListQuery) -> ListQuery:
        """If a search finds few records, have them found by their words. MongoDB uses the plan that was best
        for an earlier search: after one for a frequent word, it would read the whole list for a rare one."""
        words = [condition for condition in query.conditions if "tok" in condition]
        if not words or query.links:
            return query
        found = self._collection(query.plural).count_documents(
            {"$and": words}, hint="words", limit=MAX_FOUND_BY_WORDS + 1
        )
        return replace(query, hint="words") if await found <= MAX_FOUND_BY_WORDS else query


def existing(page: Page, kind: Kind, params: Mapping[str, Any]) -> Page:
    """The page if it exists; the first one always does."""
    if (params["page"] - 1) * params["per_page"] < page.total:
        return page
    if params["page"] > 1:
        raise PageNotFound(kind=kind.name)
    return Page([], 0)
