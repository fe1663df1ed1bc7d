"""Response caches: list pages, records rendered for lists, single records; LRUs limited in bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from datetime import datetime, time, timedelta
from typing import Any, NamedTuple

import orjson
from cachetools import LRUCache

from handlers.responses import JSON, Fragment, RecordState, modified_at, representation_tag, to_json
from handlers.responses.prepared import LastModified, PreparedResponse
from handlers.store_protocol import Head, Ref, Store
from handlers.time_slices import let_others_run
from schemas.kind import Document, Kind, RenderContext
from schemas.kinds.event import EVENT
from schemas.kinds.event_representation import is_locked, without_protected_fields
from schemas.preconditions import version_tag
from schemas.site import Site
from schemas.values.dates import Moment, is_fixed

FRAGMENT_BYTES, RESPONSE_BYTES = 96 * 1024 * 1024, 40 * 1024 * 1024
"""Maximum sizes of the caches of a process: records rendered for lists, and whole responses. Separate:
pages that are requested once would otherwise displace the records that other pages are made of."""
ENTRY_BYTES = 1000
"""Estimated overhead of each entry: its key, headers and ETag."""
TIME_DEPENDENT = ("strict_dates", "only_with_upcoming")
"""Parameters whose results depend on the current time."""
Key = tuple[Hashable, ...]
Make = Callable[[], Awaitable[tuple[PreparedResponse, datetime]]]


class ByteCache(LRUCache[Key, tuple[Any, int]]):
    """An LRU cache of values with their sizes in bytes. Callers share it: each key begins with their name."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(max_bytes, getsizeof=lambda entry: entry[1] + ENTRY_BYTES)

    def take(self, *key: Hashable) -> Any:
        try:
            return self[key][0]
        except KeyError:
            return None

    def keep(self, value: Any, size: int, *key: Hashable) -> None:
        size += sum(len(part) for part in key if isinstance(part, str))
        if size + ENTRY_BYTES <= self.maxsize:
            self[key] = (value, size)


class CachedPage(NamedTuple):
    """A list response, valid at one position of the change feed and within a span of time."""

    response: PreparedResponse
    position: int
    since: datetime
    until: datetime

    def is_current(self, position: int, now: datetime) -> bool:
        return self.position == position and self.since <= now < self.until


class PageCache:
    """List responses by request. Before one is sent, the change feed is read: nobody gets a response that was
    outdated when they asked. Requests for the same page share the work if nothing has changed in between.
    A cached page costs a tenth of one that is read."""

    def __init__(self, store: Store, cache: ByteCache) -> None:
        self._store, self._cache = store, cache
        self._making: dict[Key, tuple[int, asyncio.Task[CachedPage]]] = {}
        self.hits = self.misses = 0

    async def response(self, key: Key, make: Make) -> PreparedResponse:
        """The response for a key. `make` computes it, and when it expires if nothing changes."""
        asked_at, position = self._store.site.now(), self._store.feed.position
        cached: CachedPage | None = self._cache.take("page", *key)
        if key in self._making or (cached and cached.is_current(position, self._store.site.now())):
            position = await self._store.feed.catch_up()
            cached = self._cache.take("page", *key)
        if cached and cached.is_current(position, self._store.site.now()):
            self.hits += 1
            return cached.response
        made_at, task = self._making.get(key, (None, None))
        if task is not None and made_at == position:
            self.hits += 1
        else:
            self.misses += 1
            task = asyncio.create_task(self._make(key, position, make))
            # If all requests that wait for it are cancelled, its error is of no interest.
            task.add_done_callback(lambda task: task.cancelled() or task.exception())
            self._making[key] = (position, task)
        page = await asyncio.shield(task)
        # One that was begun for an earlier request may have expired before this one came.
        return page.response if asked_at < page.until else await self.response(key, make)

    async def _make(self, key: Key, position: int, make: Make) -> CachedPage:
        # What is read from now on is at least as current as the position, and is valid as long as it lasts.
        since = self._store.site.now()
        try:
            response, until = await self._store.feed.confirm(make)
        finally:
            if self._making.get(key, (None, None))[1] is asyncio.current_task():
                del self._making[key]
        page = CachedPage(response, position, since, until)
        self._cache.keep(page, response.size, "page", *key)
        return page


def expires_at(query: Mapping[str, Any], sent: Iterable[tuple[str, str]], site: Site) -> datetime:
    """When a list expires if nothing changes: after a second if it depends on the current time, otherwise at
    the end of the day in the site's time zone, because lists start today by default."""
    now = site.now()
    dates = [text for name, text in sent if isinstance(query.get(name), Moment)]
    if any(query.get(name) for name in TIME_DEPENDENT) or not all(is_fixed(text) for text in dates):
        return now + timedelta(seconds=1)
    tomorrow = site.zone.to_wall(now).date() + timedelta(days=1)
    return site.zone.to_utc(datetime.combine(tomorrow, time()))


def state_of(kind: Kind, record: Head) -> RecordState:
    # A term is shown with its event count, which changes without a new version of the term.
    count = None if kind.is_post else record["events"]["publish"]
    return RecordState(record["_id"], record["version"], record["modified_utc"], count)


def selected(body: bytes, context: RenderContext) -> bytes:
    """A rendered record reduced to the requested fields."""
    return to_json(context.selection.of(orjson.loads(body))) if context.selection else body


class View(NamedTuple):
    """A way of rendering records: whether one may be shown, and how."""

    name: str | None
    """Part of the cache key; None for a view that is not cached."""
    shows: Callable[[Document], bool]
    render: Callable[[Document], bytes]


class FragmentCache:
    """Rendered records, by record, caller and view, used only for the version that was just queried.
    Different lists of 20,000 events cost a third less with it."""

    def __init__(self, store: Store, cache: ByteCache) -> None:
        self._store, self._cache = store, cache
        self.hits = self.misses = 0

    async def render_list(self, kind: Kind, heads: Sequence[Head], context: RenderContext) -> list[Fragment]:
        """The records of a page as JSON, in page order."""
        view = View("", context.caller.sees, lambda record: to_json(kind.represent(kind, record, context)))
        shown = await self.render(kind, heads, context, view)
        return [Fragment(state, selected(body, context)) for state, body in shown]

    async def render(
        self, kind: Kind, heads: Sequence[Head], context: RenderContext, view: View
    ) -> list[Fragment]:
        """The rendered records, in the given order."""
        shared = ("fragment", context.site.namespace, kind.name, context.caller.visibility_key, view.name)
        found: dict[int, Fragment | None] = {}
        for head in heads:
            cached: Fragment | None = self._cache.take(*shared, head["_id"])
            found[head["_id"]] = cached if cached and cached.state == state_of(kind, head) else None
        missing = [id for id, fragment in found.items() if fragment is None]
        self.hits += len(found) - len(missing)
        self.misses += len(missing)
        for record in await self._store.find_many(kind, missing) if missing else ():
            await let_others_run()
            if view.shows(record):  # it may have been hidden since the query
                body = view.render(readable_part(kind, record, context))
                found[record["_id"]] = fragment = Fragment(state_of(kind, record), body)
                if view.name is not None:
                    self._cache.keep(fragment, len(body), *shared, record["_id"])
        return [fragment for fragment in found.values() if fragment is not None]


def readable_part(kind: Kind, record: Document, context: RenderContext) -> Document:
    """A record as lists show it: a protected event without the fields that its password protects."""
    locked = kind is EVENT and is_locked(record) and not context.caller.bypasses_passwords
    return without_protected_fields(record, context.site) if locked else record


class CachedRecord(NamedTuple):
    """A response, the state of its record, and the position of the change feed at which it is current."""

    response: PreparedResponse
    state: RecordState
    position: int | None

    def is_current(self, position: int) -> bool:
        """Whether it can be sent without another query: no record at all has changed since."""
        return self.position == position

    def matches(self, kind: Kind, head: Head) -> bool:
        """Whether the record is unchanged."""
        return self.state == state_of(kind, head)


class RecordCache:
    """Responses for single records, by kind, id or slug, and view. Records that are read again cost half."""

    def __init__(self, cache: ByteCache) -> None:
        self._cache = cache
        self.hits = self.misses = 0

    def take(self, kind: Kind, ref: Ref, context: RenderContext) -> CachedRecord | None:
        """The cached response, which may be outdated."""
        found: CachedRecord | None = self._cache.take("record", context.key, kind.name, ref)
        return found

    def keep(
        self,
        kind: Kind,
        ref: Ref,
        head: Head,
        context: RenderContext,
        position: int,
        response: PreparedResponse,
    ) -> None:
        # Without a position the cached response is never sent unchecked: each request needs the password.
        cached = CachedRecord(response, state_of(kind, head), None if is_locked(head) else position)
        self._cache.keep(cached, response.size, "record", context.key, kind.name, ref)


def read_response(kind: Kind, record: Document, context: RenderContext) -> PreparedResponse:
    """The response for a single record."""
    shown = kind.represent(kind, record, context)
    if kind.json_ld:
        shown["json_ld"] = kind.json_ld(kind, record, context)
    modified = modified_at(kind, record)
    # The time of a term may be that of several changes to the number of its events.
    is_exact = kind.is_post and has_own_time(record)
    return PreparedResponse(
        selected(to_json(shown), context),
        {"Content-Type": JSON, "ETag": record_tag(kind, record, context)},
        modified=LastModified(modified, is_exact),
    )


def has_own_time(record: Document) -> bool:
    """Whether no other version of a record has the same time of change."""
    return bool(record["version"] == 1 or record.get("has_own_time"))


def record_tag(kind: Kind, head: Head, context: RenderContext, occasion: str = "read") -> str:
    """The ETag of a record, derived from everything its representation depends on."""
    return representation_tag(version_tag(head), context, occasion, kind.name, state_of(kind, head))
