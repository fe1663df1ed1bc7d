"""Handlers of feeds: lists and single records in formats other than JSON."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlencode

from aiohttp import web

from handlers.feed_validators import (
    beginning_of_today,
    feed_tag,
    is_long_feed_unchanged,
    last_modified,
    long_feed_tag,
    told,
)
from handlers.records import CALLER, Caches, PasswordInput, path_ref, sent_password
from handlers.requests import query_pairs, query_values, values_of
from handlers.responses.cache import View, expires_at, record_tag
from handlers.responses.negotiation import requested_format
from handlers.responses.prepared import (
    LastModified,
    OutgoingResponse,
    PreparedResponse,
    not_modified,
    not_modified_since,
)
from handlers.responses.streamed import StreamedResponse
from handlers.store_protocol import Scan, Store
from schemas.formats import Feed, Format, formats_of
from schemas.kind import Document, Kind, RenderContext, load_valid
from schemas.site import Site
from schemas.values.dates import http_date

BATCH = 10
"""Records that are rendered at a time; other requests are handled in between."""
MAX_SHORT_FEED = 5000
"""The records of a longer feed are not looked through before it begins."""
CANCELLED_SHOWN = timedelta(days=30)
"""How long events in the trash are shown as cancelled."""


class FeedHandlers:
    """The handlers of one kind."""

    def __init__(self, kind: Kind, store: Store, site: Site, caches: Caches) -> None:
        self.kind, self.store, self.site, self.fragments = kind, store, site, caches.fragments
        self.formats = formats_of(kind)

    async def index(self, request: web.Request) -> web.StreamResponse:
        """A whole list, without pages, streamed."""
        chosen, context = requested_format(request, self.formats), RenderContext(self.site, request[CALLER])
        pairs = query_pairs(request)
        schema = self.kind.feed_schema
        query, problems = load_valid(schema, values_of(pairs, schema), self.site)
        url, changes = self.url(pairs, chosen), self.store.feed
        await changes.catch_up()
        modified = last_modified(changes.changed_at, expires_at(query, pairs, self.site), self.site)
        long_tag = long_feed_tag(changes.last_change, modified, url, context)
        if unchanged := is_long_feed_unchanged(request, long_tag):
            return OutgoingResponse(unchanged)
        lists = self.lists(query, chosen)
        scan = await self.store.scan(self.kind, lists, context.caller, problems, MAX_SHORT_FEED)
        tag = feed_tag(scan, url, context) if scan.is_complete else long_tag
        if unchanged := not_modified(request, tag) or not_modified_since(request, tag, modified):
            return OutgoingResponse(unchanged)
        known = (scan.modified, dict(scan.zones)) if scan.is_complete else (modified, {})
        feed = Feed(self.kind, context, await self.store.instance(), url, *known)
        view = feed_view(feed, chosen, query.get("status"), scan)
        validators = {"ETag": tag, "Last-Modified": http_date(told(modified, changes.now))}
        headers = self.headers(chosen, self.kind.plural)
        return StreamedResponse(self.chunks(feed, chosen, scan, view), headers | validators)

    async def read(self, request: web.Request) -> web.StreamResponse:
        """A single record."""
        chosen, context = requested_format(request, self.formats), RenderContext(self.site, request[CALLER])
        ref, sent = path_ref(request, self.kind), query_values(request, PasswordInput)
        record = await self.store.read(self.kind, ref, context.caller, sent_password(request, sent))
        zones = {record["timezone"]: (record["start_utc"], record["end_utc"])} if "timezone" in record else {}
        url = f"{self.kind.rest_url(self.site, record['_id'])}.{chosen.ending}"
        feed = Feed(self.kind, context, await self.store.instance(), url, record["modified_utc"], zones)
        tag = record_tag(self.kind, record, context, chosen.ending)
        headers = {**self.headers(chosen, record["slug"]), "ETag": tag}
        modified = LastModified(record["modified_utc"], is_exact=False)
        return PreparedResponse(chosen.whole(feed, [record]), headers, modified=modified).respond_to(request)

    def lists(self, query: Document, chosen: Format) -> list[Document]:
        """The list and, in some formats, the events of it that were cancelled lately."""
        whole = self.kind.feed_query(query, self.site)
        if not chosen.with_cancelled or "trash" in (query.get("status") or ()):
            return [whole]
        return [whole, whole | {"cancelled_since": beginning_of_today(self.site) - CANCELLED_SHOWN}]

    def url(self, pairs: list[tuple[str, str]], chosen: Format) -> str:
        address = f"{self.site.api}/{self.kind.plural}.{chosen.ending}"
        kept = [(name, value) for name, value in pairs if name != "password"]
        return f"{address}?{urlencode(kept, quote_via=quote)}" if kept else address

    def headers(self, chosen: Format, name: str) -> dict[str, str]:
        is_text = chosen.media_type.startswith("text/")
        return {
            "Content-Type": chosen.media_type + ("; charset=utf-8" if is_text else ""),
            "Content-Disposition": f'inline; filename="{name}.{chosen.ending}"',
        }

    async def chunks(self, feed: Feed, chosen: Format, scan: Scan, view: View) -> AsyncGenerator[bytes]:
        separator = b""
        yield chosen.begin(feed)
        async with aclosing(scan.heads(BATCH)) as batches:
            async for heads in batches:
                if items := await self.fragments.render(feed.kind, heads, feed.context, view):
                    yield separator + chosen.separator.join(item.body for item in items)
                    separator = chosen.separator
        yield chosen.end


def feed_view(feed: Feed, chosen: Format, statuses: list[str] | None, scan: Scan) -> View:
    """How the records of a feed are rendered. Those of long feeds are not cached: they would displace those
    of lists. Nor are those of feeds that define a zone for some of their events only: others differ."""
    caller = feed.context.caller

    def shows(record: Mapping[str, Any]) -> bool:
        """Whether the caller sees a record, which may have been moved to the trash since it was found."""
        if record["status"] == "trash" and "trash" not in (statuses or ()):
            is_of_list = not statuses or record.get("trashed_from") in statuses
            return chosen.with_cancelled and is_of_list and caller.saw(record)
        return caller.sees(record)

    if not scan.is_complete:
        return View(None, shows, lambda record: chosen.before(feed, record) + chosen.item(feed, record))
    name = chosen.ending if feed.zones == scan.zones else None
    return View(name, shows, lambda record: chosen.item(feed, record))
