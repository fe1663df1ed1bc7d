"""What a page is made for: the caller, their language, and the address with its filters."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import quote, urlencode, urlsplit

from aiohttp import web

from handlers.pages.localization import Localization, localization
from handlers.records import CALLER
from handlers.requests import language_of, query_pairs
from schemas.caller import Caller
from schemas.kind import RenderContext
from schemas.language import Text, translate
from schemas.site import Site

FILTERS = (
    *("search", "categories", "tags", "venue", "organizer", "featured", "ticketed", "status", "post_parent"),
    *("geoloc", "geoloc_lat", "geoloc_lng", "geoloc_radius"),
)
"""Parameters of the event list that pages have, too: links from one view to another keep them."""
KEPT = (*FILTERS, "lang")
Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class PageContext:
    """The context of one page; templates have it as `page`."""

    site: Site
    caller: Caller
    language: str
    path: str
    pairs: Pairs

    @property
    def key(self) -> Hashable:
        """Everything that the page depends on; used in cache keys."""
        return (self.path, tuple(self.pairs), self.caller.visibility_key, self.language)

    @property
    def records(self) -> RenderContext:
        return RenderContext(self.site, self.caller)

    @property
    def local(self) -> Localization:
        return localization(self.language)

    def text(self, template: str, **values: object) -> str:
        """A text in the language of the page. Templates call it `_`."""
        return translate(Text(template, **values), self.language)

    @property
    def site_title(self) -> str:
        return self.site.title or self.text(Text("Calendar"))

    def value(self, name: str) -> str:
        """The value of a parameter; empty if it is not sent."""
        return next((value for sent, value in self.pairs if sent == name), "")

    @cached_property
    def filters(self) -> Pairs:
        """The filters of the address."""
        return [(name, value) for name, value in self.pairs if name.partition("[")[0] in FILTERS and value]

    def values(self, name: str) -> list[str]:
        """All values of a filter, however it is sent: `tags=a&tags=b` or `tags[]=a`."""
        return [value for sent, value in self.filters if sent.partition("[")[0] == name]

    def link(self, path: str, **changes: object) -> str:
        """A link to a page with the same filters and language; a change to None removes a parameter."""
        kept = [
            (name, value)
            for name, value in self.pairs
            if value and name.partition("[")[0] in KEPT and name not in changes
        ]
        kept += [(name, str(value)) for name, value in changes.items() if value is not None]
        return self.plain_link(path) + (f"?{urlencode(kept, quote_via=quote)}" if kept else "")

    def link_without(self, removed: Pairs) -> str:
        """A link to this page without some of its filters."""
        return replace(self, pairs=[pair for pair in self.pairs if pair not in removed]).link(self.path)

    def plain_link(self, path: str) -> str:
        """A link to a page, without any parameters. A path, so that it works under any name of the host."""
        return urlsplit(self.site.base_url).path.rstrip("/") + path

    def unfiltered_link(self, path: str) -> str:
        """A link to a page without filters, in the language that the address asks for."""
        return self._in_language(self.plain_link(path))

    def record_link(self, url: str) -> str:
        """A link to the page of a record, in the language that the address asks for."""
        return self._in_language(urlsplit(url).path)

    def _in_language(self, path: str) -> str:
        lang = self.value("lang")
        return path + (f"?lang={quote(lang)}" if lang else "")

    def language_link(self, language: str) -> str:
        """A link to this page in another language, with its filters and the page of its list."""
        return self.link(self.path, lang=language, page=self.value("page") or None)

    def address(self, language: str | None) -> str:
        """The whole address of this page without filters; without a language the browser's is used."""
        kept = [pair for pair in self.pairs if pair[0] == "page"] + [("lang", language)] * bool(language)
        return self.site.base_url + self.path + (f"?{urlencode(kept, quote_via=quote)}" if kept else "")

    def feed(self, ending: str) -> str:
        """The address of a feed with the filters of the page."""
        sent = self.filters + self._published()
        query = f"?{urlencode(sent, quote_via=quote)}" if sent else ""
        return f"{self.site.api}/events.{ending}{query}"

    def _published(self) -> Pairs:
        """The status that pages show by default: without it, feeds show drafts to those who see all."""
        return [("status", "publish")] if self.caller.sees_all and not self.values("status") else []


def page_context(request: web.Request, site: Site) -> PageContext:
    return PageContext(site, request[CALLER], language_of(request), request.path, query_pairs(request))
