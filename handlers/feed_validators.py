"""ETag and Last-Modified of feeds and lists, and what clients are told about them."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import datetime, timedelta

from aiohttp import web

from handlers.responses import representation_tag
from handlers.responses.prepared import LastModified, PreparedResponse, not_modified
from handlers.store_protocol import ChangeFeed, Scan
from schemas.kind import RenderContext
from schemas.site import Site

SECOND = timedelta(seconds=1)
LATE_SECONDS = 5
"""A write may become visible this long after the time that it has."""


def feed_tag(scan: Scan, url: str, context: RenderContext) -> str:
    """The ETag of a feed, from the versions of its records: nothing needs to be rendered for it."""
    return f"W/{representation_tag(len(scan.ids), context, url, scan.digest)}"


def long_feed_tag(last_change: Hashable, modified: datetime, url: str, context: RenderContext) -> str:
    """The ETag of a long feed, which changes with any record: its own records would have to be read first."""
    return f"W/{representation_tag(0, context, url, last_change, modified)}"


def is_long_feed_unchanged(request: web.Request, tag: str) -> PreparedResponse | None:
    """A 304 response if the client has a long feed with this ETag. `*` does not say that it has one."""
    return None if request.headers.get("If-None-Match") == "*" else not_modified(request, tag)


def last_modified(changed: datetime, expires: datetime, site: Site) -> datetime:
    """When a feed or list changed last: with the last change to any record, or at midnight, when it moves on
    by a day; one that depends on the current time changes all the time."""
    now = site.now()
    return now if expires <= now + SECOND else max(changed, beginning_of_today(site))


def beginning_of_today(site: Site) -> datetime:
    """Midnight in the site's time zone, as UTC."""
    today = site.zone.to_wall(site.now()).date()
    return site.zone.to_utc(site.zone.edge_of_day(today, datetime.min.time()))


def told(modified: datetime, now: datetime) -> datetime:
    """The time of the last change as clients learn it. More changes may follow with the same time: shortly
    after a change they are told an earlier one, so that they ask again."""
    return modified - SECOND if is_recent(modified, now) else modified


def is_recent(modified: datetime, now: datetime) -> bool:
    """Whether more changes may follow with the same time. `now` is by the clock that changes have."""
    return modified > now - timedelta(seconds=LATE_SECONDS)


def dated(before: datetime, feed: ChangeFeed, expires: datetime, site: Site) -> tuple[LastModified, datetime]:
    """When a list changed last, given the last change before it was read and the feed afterwards, and when a
    response that says so expires: soon, if that is not final."""
    modified = last_modified(feed.changed_at, expires, site)
    if before == feed.changed_at and not is_recent(modified, feed.now):
        return LastModified(modified, is_exact=True), expires
    left = max(modified + timedelta(seconds=LATE_SECONDS) - feed.now, SECOND)
    return LastModified(modified - SECOND, is_exact=False), min(expires, site.now() + left)
