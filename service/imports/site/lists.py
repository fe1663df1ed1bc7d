"""Reads the lists of a site, page by page, and notices if it does not behave."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import orjson
from yarl import URL

from schemas import CATEGORY, EVENT, TAG
from schemas.kind import Kind
from service.imports.fetching import Answer, Fetcher, shown
from service.imports.item import SourceError
from service.imports.site.values import id_of

API_PATHS = ("wp-json/tribe/events/v1", "calendar/events/v1")
"""Where sites of the reference service and other Kalends have their interface."""
ROUTE = "rest_route"
PER_PAGE = 50
"""The most that the reference service allows."""
QUERIES = {
    CATEGORY.plural: {"hide_empty": "0"},
    TAG.plural: {"hide_empty": "0"},
    EVENT.plural: {"start_date": "1900-01-01", "end_date": "2999-12-31"},
}
"""Parameters with which a list contains everything."""
MAX_PAGE_BYTES = 30_000_000
MAX_PAGES = 100_000
PAGES_ADDED = 20
"""How many pages a list may get longer while it is read."""


@dataclass(frozen=True)
class ListPage:
    """A page of a list, as the site shows it."""

    records: list[Any]
    total: int
    total_pages: int


class SiteLists:
    """The lists of a site."""

    def __init__(self, root: URL, fetcher: Fetcher) -> None:
        self._root, self._fetcher, self._name = root, fetcher, shown(root)

    async def records(self, kind: Kind, page: ListPage) -> AsyncIterator[Any]:
        """The records of all pages, each once: records move between pages if others are added meanwhile."""
        seen: set[int] = set()
        number, last = 1, page.total_pages + PAGES_ADDED
        while True:
            new = [one for one in page.records if id_of(one) not in seen]
            if not new and page.records:
                raise SourceError(f"{self._name}/{kind.plural}: page {number} repeats earlier records")
            seen |= {id for one in new if (id := id_of(one))}
            for one in new:
                yield one
            number += 1
            if number > page.total_pages or not page.records:
                return
            if number > last:
                raise SourceError(f"{self._name}/{kind.plural} gets longer and longer while it is read")
            page = await self.page(kind, number)

    async def change_log(self) -> str:
        """What identifies the change log of another Kalends; other sites have none."""
        with suppress(SourceError):  # a site that does not work is noticed when its lists are read
            answer = await self._fetcher.get(list_address(self._root, "changes"), MAX_PAGE_BYTES)
            return str(json_object(answer).get("next", "")).partition("-")[0]
        return ""

    async def page(self, kind: Kind, number: int) -> ListPage:
        query = QUERIES.get(kind.plural, {}) | {"page": str(number), "per_page": str(PER_PAGE)}
        url = list_address(self._root, kind.plural).update_query(query)
        answer = await self._fetcher.get(url, MAX_PAGE_BYTES)
        found = json_object(answer)
        if answer.status == 404 and str(found.get("code")).endswith("archive-page-not-found"):
            return ListPage([], 0, 0)  # some versions answer so if there are no records at all
        if answer.status != 200:
            raise SourceError(f"{shown(url)} answers {answer.status}: {message_of(found)}")
        records, pages, total = (found.get(name) for name in (kind.plural, "total_pages", "total"))
        if not isinstance(records, list) or not isinstance(pages, int) or not isinstance(total, int):
            raise SourceError(f"{shown(url)} is not a list of {kind.plural}")
        if pages > MAX_PAGES:
            raise SourceError(f"{shown(url)} says that it has {pages} pages; at most {MAX_PAGES} are read")
        return ListPage(records, total, pages)


def identity(root: URL) -> str:
    """What identifies a site, whatever the path of its interface is."""
    path = root.path.rstrip("/")
    for known in API_PATHS:
        path = path.removesuffix(f"/{known}")
    return f"{root.authority}{path}"


def list_address(root: URL, plural: str) -> URL:
    """The address of a list; sites without readable links have the path as a parameter."""
    if ROUTE not in root.query:
        return root / plural
    return root.update_query({ROUTE: f"{root.query[ROUTE].rstrip('/')}/{plural}"})


def json_object(answer: Answer) -> dict[str, Any]:
    """The JSON object in an answer; raises SourceError."""
    try:
        found = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        kind = "HTML" if answer.is_html else "something else"
        raise SourceError(f"{shown(answer.url)} answers {kind} instead of JSON") from None
    if not isinstance(found, dict):
        raise SourceError(f"{shown(answer.url)} does not answer a JSON object")
    return found


def message_of(found: Mapping[str, Any]) -> str:
    """The message of an error, on one line."""
    return " ".join(str(found.get("message") or found.get("code") or "no message").split())[:200]
