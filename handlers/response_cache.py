"""Response caches: list pages, records rendered for lists, single records; LRUs limited in bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from datetime import datetime, time, timedelta
from typing import Any, NamedTuple

import orjson
from cachetools import LRUCache

from handlers.answers import JSON, entity_tag, to_json
from handlers.ports import Head, Ref, Store
from handlers.replies import Answer
from schemas.dates import Moment, is_fixed
from schemas.event import EVENT
from schemas.event_view import blanked, is_locked
from schemas.kind import Document, Kind, View
from schemas.site import Site

FRAGMENT_BYTES, RESPONSE_BYTES = 96 * 1024 * 1024, 40 * 1024 * 1024
"""Maximum sizes of the caches of a process: records rendered for lists, and whole responses. Separate:
pages that are requested once would otherwise displace the records that other pages are made of."""
ENTRY_BYTES = 1000
"""Estimated overhead of each entry: its key, headers and ETag."""
FORM = 2
"""Part of every ETag. Increment it when the representation changes, to invalidate clients' cached copies."""
MOVING = ("strict_dates", "only_with_upcoming")
"""Parameters whose results depend on the current time."""
Key = tuple[Hashable, ...]
Make = Callable[[], Awaitable[tuple[Answer, datetime]]]


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
        if size + ENTRY_BYTES <= self.maxsize:
            self[key] = (value, size)


class CachedPage(NamedTuple):
    """A list response, valid at one position of the change feed and within a span of time."""

    answer: Answer
    position: int
    since: datetime
    until: datetime

    def holds(self, position: int | None, now: datetime) -> bool:
        return self.position == position and self.since <= now < self.until


class PageCache:
    """List responses by request. Before one is sent, the change feed is read: nobody gets a response that was
    outdated when they asked. Requests for the same page share the work if nothing has changed in between.
    A cached page costs a tenth of one that is read."""

    def __init__(self, store: Store, cache: ByteCache) -> None:
        self._store, self._cache = store, cache
        self._making: dict[Key, tuple[int, asyncio.Task[Answer]]] = {}

    async def answer(self, key: Key, make: Make) -> Answer:
        """The response for a key. `make` computes it, and when it expires if nothing changes."""
        position = self._store.feed.last
        cached: CachedPage | None = self._cache.take("page", *key)
        if key in self._making or (cached and cached.holds(position, self._store.site.now())):
            position = await self._store.feed.catch_up()
            cached = self._cache.take("page", *key)
        if position is None:
            return (await make())[0]
        if cached and cached.holds(position, self._store.site.now()):
            return cached.answer
        made_at, task = self._making.get(key, (None, None))
        if task is None or made_at != position:
            task = asyncio.create_task(self._make(key, position, make))
            self._making[key] = (position, task)
        return await asyncio.shield(task)

    async def _make(self, key: Key, position: int, make: Make) -> Answer:
        # What is read from now on is at least as current as the position, and is valid as long as it lasts.
        since = self._store.site.now()
        try:
            answer, until = await make()
        finally:
            if self._making.get(key, (None, None))[1] is asyncio.current_task():
                del self._making[key]
        self._cache.keep(CachedPage(answer, position, since, until), answer.size, "page", *key)
        return answer


def expires(query: Mapping[str, Any], sent: Iterable[tuple[str, str]], site: Site) -> datetime:
    """When a list expires if nothing changes: after a second if it depends on the current time, otherwise at
    the end of the day in the site's time zone, because lists start today by default."""
    now = site.now()
    dates = [text for name, text in sent if isinstance(query.get(name), Moment)]
    if any(query.get(name) for name in MOVING) or not all(is_fixed(text) for text in dates):
        return now + timedelta(seconds=1)
    tomorrow = site.zone.to_wall(now).date() + timedelta(days=1)
    return site.zone.to_utc(datetime.combine(tomorrow, time()))


class State(NamedTuple):
    """What a rendering depends on: the record's version and, for a term, its number of events."""

    version: int
    events: int | None


def state_of(kind: Kind, record: Head) -> State:
    # A term is shown with its event count, which changes without a new version of the term.
    return State(record["version"], None if kind.is_post else record["events"]["publish"])


def selected(body: bytes, view: View) -> bytes:
    """A rendered record reduced to the requested fields."""
    return to_json(view.selection.of(orjson.loads(body))) if view.selection else body


class FragmentCache:
    """Records rendered for lists, by record and caller, used only for the version that was just queried.
    Different lists of 20,000 events cost a third less with it."""

    def __init__(self, store: Store, cache: ByteCache) -> None:
        self._store, self._cache = store, cache

    async def listed(self, kind: Kind, heads: Sequence[Head], view: View) -> list[bytes]:
        """The rendered records of a page, in page order."""
        shared = ("fragment", view.site.namespace, kind.name, view.caller.sight)
        found: dict[int, bytes | None] = {}
        for head in heads:
            state, body = self._cache.take(*shared, head["_id"]) or (None, None)
            found[head["_id"]] = body if state == state_of(kind, head) else None
        missing = [id for id, body in found.items() if body is None]
        for record in await self._store.fetch(kind, missing) if missing else ():
            if view.caller.sees(record):  # it may have been hidden since the query
                body = to_json(shown_in_list(kind, record, view))
                found[record["_id"]] = body
                self._cache.keep((state_of(kind, record), body), len(body), *shared, record["_id"])
        return [selected(body, view) for body in found.values() if body is not None]


def shown_in_list(kind: Kind, record: Document, view: View) -> Document:
    locked = kind is EVENT and is_locked(record) and not view.caller.unlocks
    return kind.represent(kind, blanked(record, view.site) if locked else record, view)


class CachedRecord(NamedTuple):
    """A response, the state of its record, and the position of the change feed at which it is current."""

    answer: Answer
    state: State
    position: int | None

    def holds(self, position: int | None) -> bool:
        """Whether it can be sent without another query: no record at all has changed since."""
        return position is not None and self.position == position

    def shows(self, kind: Kind, head: Head) -> bool:
        """Whether the record is unchanged."""
        return self.state == state_of(kind, head)


class RecordCache:
    """Responses for single records, by kind, id or slug, and view. Records that are read again cost half."""

    def __init__(self, cache: ByteCache) -> None:
        self._cache = cache

    def take(self, kind: Kind, ref: Ref, view: View) -> CachedRecord | None:
        """The cached response, which may be outdated."""
        found: CachedRecord | None = self._cache.take("record", view.key, kind.name, ref)
        return found

    def keep(
        self, kind: Kind, ref: Ref, head: Head, view: View, position: int | None, answer: Answer
    ) -> Answer:
        # Without a position the cached response is never sent unchecked: each request needs the password.
        cached = CachedRecord(answer, state_of(kind, head), None if is_locked(head) else position)
        self._cache.keep(cached, answer.size, "record", view.key, kind.name, ref)
        return answer


def record_answer(kind: Kind, record: Document, view: View) -> Answer:
    """The response for a single record."""
    shown = kind.represent(kind, record, view)
    if kind.json_ld:
        shown["json_ld"] = kind.json_ld(kind, record, view)
    return Answer(
        selected(to_json(shown), view), {"Content-Type": JSON, "ETag": record_tag(kind, record, view)}
    )


def record_tag(kind: Kind, head: Head, view: View, occasion: str = "read") -> str:
    """The ETag of a record, derived from everything its representation depends on."""
    version, events = state_of(kind, head)
    depends = (FORM, view.site.facts, view.key, occasion, kind.name, head["_id"], version, events)
    return entity_tag(version, repr(depends).encode())
