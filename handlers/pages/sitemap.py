"""The sitemap and robots.txt: which pages search engines may visit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from aiohttp import web

from handlers.pages.calendar.views import CalendarPages
from handlers.requests import values_of
from handlers.responses import entity_tag, static_response
from handlers.responses.prepared import PreparedResponse
from handlers.store_protocol import Store
from schemas import BY_PLURAL, EVENT, KINDS, Kind
from schemas.caller import PUBLIC
from schemas.errors import NoRoute, Problems
from schemas.kind import load
from schemas.kinds.event_representation import is_locked
from schemas.language import Text
from schemas.results import Page

XML = "application/xml; charset=utf-8"
MAX_URLS = 10_000
"""Addresses in a part of the sitemap; search engines accept 50,000."""
OLDEST = timedelta(days=365)
"""Events that ended earlier are left out: nobody looks for them, and visits are limited."""
NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
VIEWS = ("/", "/events/list/", "/events/map/")


class SitemapPages:
    """The handlers. Whoever asks, only what is public is listed."""

    def __init__(self, store: Store, calendar: CalendarPages) -> None:
        self.store, self.calendar, self.site = store, calendar, calendar.site

    async def robots(self, request: web.Request) -> web.StreamResponse:
        path = urlsplit(self.site.base_url).path.rstrip("/")
        text = f"User-agent: *\nDisallow: {path}/edit\n\nSitemap: {self.site.base_url}/sitemap.xml\n"
        return static_response(text.encode(), "text/plain; charset=utf-8").respond_to(request)

    async def index(self, request: web.Request) -> web.StreamResponse:
        """The list of the parts."""

        async def make() -> tuple[PreparedResponse, datetime]:
            addresses = [f"{self.site.base_url}/sitemap-views-1.xml"]
            for kind in KINDS:
                parts = math.ceil((await self._page(kind, 1, 1)).total / MAX_URLS)
                base = f"{self.site.base_url}/sitemap-{kind.plural}"
                addresses += [f"{base}-{number + 1}.xml" for number in range(parts)]
            return xml_response("sitemapindex", "sitemap", addresses), self.calendar.midnight()

        return (await self.calendar.pages.response(("sitemap",), make)).respond_to(request)

    async def part(self, request: web.Request) -> web.StreamResponse:
        """The pages of one kind; not cached, because parts are large and rarely asked for."""
        name, number = request.match_info["name"], int(request.match_info["number"])
        if name == "views" and number == 1:
            addresses: Iterable[str] = [self.site.base_url + path for path in VIEWS]
        elif (kind := BY_PLURAL.get(name)) and number:
            addresses = self._addresses(kind, await self._page(kind, number, MAX_URLS))
        else:
            raise NoRoute(Text("The sitemap has no such part."))
        return xml_response("urlset", "url", addresses).respond_to(request)

    async def _page(self, kind: Kind, number: int, size: int) -> Page:
        since = (self.site.now() - OLDEST).date()
        sent = [("orderby", "id"), *([("ends_after", str(since))] if kind is EVENT else [])]
        query = load(kind.query_schema, values_of(sent, kind.query_schema), self.site)
        return await self.store.page(kind, query | {"page": number, "per_page": size}, PUBLIC, Problems())

    def _addresses(self, kind: Kind, page: Page) -> Iterator[str]:
        return (kind.page_url(self.site, head["slug"]) for head in page.heads if not is_locked(head))


def xml_response(root: str, item: str, addresses: Iterable[str]) -> PreparedResponse:
    items = "".join(f"<{item}><loc>{escape(address)}</loc></{item}>\n" for address in addresses)
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="{NAMESPACE}">\n{items}</{root}>\n'
    body = text.encode()
    return PreparedResponse(body, {"Content-Type": XML, "ETag": entity_tag(0, body)})
