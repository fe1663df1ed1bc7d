"""Handlers of feeds: lists and single records in formats other than JSON."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode

from aiohttp import web

from handlers.negotiation import requested_format
from handlers.prepared_response import OutgoingResponse, PreparedResponse, not_modified
from handlers.records import CALLER, Caches, PasswordInput, path_ref, sent_password
from handlers.requests import query_pairs, query_values, values_of
from handlers.response_cache import View, expires_at, record_tag
from handlers.responses import representation_tag
from handlers.store_protocol import Scan, Store
from handlers.streamed_response import StreamedResponse
from schemas.dates import http_date
from schemas.formats import Feed, Format, formats_of
from schemas.kind import Document, Kind, RenderContext, load_valid
from schemas.site import Site

BATCH = 10
"""Records that are rendered at a time; other requests are handled in between."""
MAX_CACHED_FEED = 2000
"""Rendered records of longer feeds are not cached: they would displace those of lists."""
CANCELLED_SHOWN = timedelta(days=30)
"""How long events in the trash are shown as cancelled."""
LATE_SECONDS = 5
"""A write may become visible this long after the time that it has."""


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
        await self.store.feed.catch_up()
        modified = last_modified(self.store.feed.changed_at, expires_at(query, pairs, self.site), self.site)
        lists = self.lists(query, chosen)
        scan = await self.store.feed.confirm(
            lambda: self.store.scan(self.kind, lists, context.caller, problems)
        )
        url = self.url(pairs, chosen)
        tag = f"W/{feed_tag(scan, url, context)}"
        if unchanged := not_modified(request, tag) or not_modified_since(request, tag, modified):
            return OutgoingResponse(unchanged)
        feed = Feed(self.kind, context, await self.store.instance(), url, scan.modified, scan.zones)
        headers = self.headers(chosen, self.kind.plural)
        validators = {"ETag": tag, "Last-Modified": http_date(told(modified, self.site))}
        return StreamedResponse(self.chunks(feed, chosen, scan), headers | validators)

    async def read(self, request: web.Request) -> web.StreamResponse:
        """A single record."""
        chosen, context = requested_format(request, self.formats), RenderContext(self.site, request[CALLER])
        ref, sent = path_ref(request, self.kind), query_values(request, PasswordInput)
        record = await self.store.feed.confirm(
            lambda: self.store.read(self.kind, ref, context.caller, sent_password(request, sent))
        )
        zones = {record["timezone"]: (record["start_utc"], record["end_utc"])} if "timezone" in record else {}
        url = f"{self.kind.rest_url(self.site, record['_id'])}.{chosen.ending}"
        feed = Feed(self.kind, context, await self.store.instance(), url, record["modified_utc"], zones)
        tag = record_tag(self.kind, record, context, chosen.ending)
        headers = {**self.headers(chosen, record["slug"]), "ETag": tag}
        return PreparedResponse(chosen.whole(feed, [record]), headers).respond_to(request)

    def lists(self, query: Document, chosen: Format) -> list[Document]:
        """The list and, in some formats, the events of it that were cancelled lately."""
        whole = self.kind.feed_query(query, self.site)
        if not chosen.with_cancelled or query.get("status"):
            return [whole]
        return [whole, whole | {"cancelled_since": self.site.now() - CANCELLED_SHOWN}]

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

    async def chunks(self, feed: Feed, chosen: Format, scan: Scan) -> AsyncIterator[bytes]:
        caller, is_cached = feed.context.caller, len(scan.ids) <= MAX_CACHED_FEED

        def shows(record: Mapping[str, Any]) -> bool:
            is_trashed = chosen.with_cancelled and record["status"] == "trash"
            return caller.saw(record) if is_trashed else caller.sees(record)

        view = View(chosen.ending if is_cached else None, shows, lambda record: chosen.item(feed, record))
        separator = b""
        yield chosen.begin(feed)
        for at in range(0, len(scan.ids), BATCH):
            ids, versions = scan.ids[at : at + BATCH], scan.versions[at : at + BATCH]
            heads = [{"_id": id, "version": version} for id, version in zip(ids, versions, strict=True)]
            if items := await self.fragments.render(feed.kind, heads, feed.context, view):
                yield separator + chosen.separator.join(item.body for item in items)
                separator = chosen.separator
        yield chosen.end


def feed_tag(scan: Scan, url: str, context: RenderContext) -> str:
    """The ETag of a feed, from the versions of its records: nothing needs to be rendered for it."""
    return representation_tag(len(scan.ids), context, url, scan.digest)


def last_modified(changed: datetime, expires: datetime, site: Site) -> datetime:
    """When a feed changed last: with the last change to any record, or at midnight, when lists move on by a
    day; a feed that depends on the current time changes all the time."""
    now = site.now()
    if expires <= now + timedelta(seconds=1):
        return now
    today = site.zone.edge_of_day(site.zone.to_wall(now).date(), datetime.min.time())
    return max(changed, site.zone.to_utc(today))


def told(modified: datetime, site: Site) -> datetime:
    """The time of the last change as clients learn it. More changes may follow with the same time: shortly
    after a change they are told an earlier one, so that they ask again."""
    is_recent = modified > site.now() - timedelta(seconds=LATE_SECONDS)
    return modified - timedelta(seconds=1) if is_recent else modified


def not_modified_since(request: web.Request, tag: str, modified: datetime) -> PreparedResponse | None:
    """A 304 response if the feed has not changed since the time that the client names."""
    since = request.if_modified_since
    if since is None or "If-None-Match" in request.headers or since < modified.replace(tzinfo=UTC):
        return None
    return PreparedResponse(b"", {"ETag": tag}, 304)
