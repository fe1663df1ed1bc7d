"""Reads a site of the reference service, or another Kalends, through its REST interface."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from yarl import URL

from schemas import CATEGORY, EVENT, ORGANIZER, TAG, VENUE
from schemas.event_representation import LINKED
from schemas.kind import Kind
from service.imports.fetching import Answer, Fetcher, shown
from service.imports.item import Item, Refusal, SourceError, key_of
from service.imports.site_values import is_id, linked_records, values_of

ORDER = (CATEGORY, TAG, VENUE, ORGANIZER, EVENT)
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


class SiteSource:
    """The records of a site: terms, venues and organizers first, then events. With credentials, the lists
    contain unpublished records, too."""

    notices = ()
    position = 0
    size = 0

    def __init__(self, root: URL, fetcher: Fetcher) -> None:
        self._root, self._fetcher = root, fetcher
        self.name = shown(root)
        self._identity = identity(root)
        self._yielded: set[bytes] = set()

    async def items(self) -> AsyncIterator[Item | Refusal]:
        firsts = {kind.plural: await self._page(kind, 1) for kind in ORDER}
        self.size = sum(page.total for page in firsts.values())
        for kind in ORDER:
            async for record in self._records(kind, firsts[kind.plural]):
                self.position += 1
                for item in self._with_linked(kind, record):
                    yield item

    async def _records(self, kind: Kind, page: ListPage) -> AsyncIterator[Any]:
        """The records of all pages, each once: records move between pages if others are added meanwhile."""
        seen: set[Any] = set()
        number, last = 1, page.total_pages + PAGES_ADDED
        while True:
            new = [one for one in page.records if not isinstance(one, dict) or one.get("id") not in seen]
            if not new and page.records:
                raise SourceError(f"{self.name}/{kind.plural}: page {number} repeats earlier records")
            seen |= {one.get("id") for one in new if isinstance(one, dict)}
            for one in new:
                yield one
            number += 1
            if number > page.total_pages or not page.records:
                return
            if number > last:
                raise SourceError(f"{self.name}/{kind.plural} gets longer while it is read, and does not end")
            page = await self._page(kind, number)

    async def _page(self, kind: Kind, number: int) -> ListPage:
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

    def _with_linked(self, kind: Kind, record: Any) -> list[Item | Refusal]:
        """The item of a record, after those of linked records that were not in the lists."""
        if not isinstance(record, dict) or not is_id(record.get("id")):
            return [Refusal(kind, kind.plural, "a record without an ID")]
        found: list[Item | Refusal] = [
            self._item(target, one, {})
            for field, target in LINKED.items()
            if kind is EVENT
            for one in linked_records(record, field)
            if self._key(target, one["id"]) not in self._yielded
        ]
        return [*found, self._item(kind, record, self._links(kind, record))]

    def _links(self, kind: Kind, record: Mapping[str, Any]) -> dict[str, list[bytes]]:
        if kind is CATEGORY:
            parent = record.get("parent")
            return {"parent": [self._key(kind, parent)]} if is_id(parent) else {"parent": []}
        if kind is not EVENT:
            return {}
        links = {
            field: [self._key(target, one["id"]) for one in linked_records(record, field)]
            for field, target in LINKED.items()
        }
        parent = record.get("post_parent")
        return links | ({"post_parent": [self._key(EVENT, parent)]} if is_id(parent) else {})

    def _item(self, kind: Kind, record: Mapping[str, Any], links: dict[str, list[bytes]]) -> Item:
        key = self._key(kind, record["id"])
        self._yielded.add(key)
        return Item(kind, key, f"{kind.plural}/{record['id']}", values_of(kind, record), links)

    def _key(self, kind: Kind, id: Any) -> bytes:
        return key_of("site", self._identity, kind.plural, id)


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
