"""A cache of list responses, valid until anything is written to the database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any

from handlers.memory import ByteLru, LruNamespace
from handlers.prepared_response import PreparedResponse
from handlers.store_protocol import Store
from schemas.dates import Moment, is_fixed
from schemas.site import Site

TIME_DEPENDENT_PARAMETERS = ("strict_dates", "only_with_upcoming")
"""Parameters whose results depend on the current time."""
Key = tuple[Hashable, ...]


@dataclass(frozen=True)
class CachedPage:
    """A cached response, valid for one clock of the database and within a time span."""

    response: PreparedResponse
    clock: Hashable
    since: datetime
    until: datetime

    def is_current(self, clock: Hashable, now: datetime) -> bool:
        return self.clock == clock and self.since <= now < self.until


class PageCache:
    """Cached responses by request, with one computation in flight per key. Each request first asks for the
    database's current clock, so it never gets a response that was stale when it arrived."""

    def __init__(self, store: Store, memory: ByteLru) -> None:
        self._store = store
        self._memory = LruNamespace[CachedPage](memory, "pages")
        self._in_flight: dict[Key, asyncio.Task[PreparedResponse]] = {}

    async def get(
        self, key: Key, create: Callable[[], Awaitable[tuple[PreparedResponse, datetime]]]
    ) -> PreparedResponse:
        """The response for a key. `create` computes it, and when it expires if nothing is written."""
        clock = await self._store.clock.read()
        if clock is None:
            return (await create())[0]
        entry = self._memory.take(key)
        if entry and entry.is_current(clock, self._store.site.now()):
            return entry.response
        if (task := self._in_flight.get((clock, *key))) is None:
            task = asyncio.create_task(self._create(key, clock, create))
            self._in_flight[clock, *key] = task
            task.add_done_callback(lambda _: self._in_flight.pop((clock, *key)))
        return await asyncio.shield(task)

    async def _create(
        self, key: Key, clock: Hashable, create: Callable[[], Awaitable[tuple[PreparedResponse, datetime]]]
    ) -> PreparedResponse:
        since = self._store.site.now()
        response, until = await create()
        self._memory.keep(key, CachedPage(response, clock, since, until), response.size)
        return response


def expires_at(query: Mapping[str, Any], sent: Iterable[tuple[str, str]], site: Site) -> datetime:
    """When a list expires if nothing is written: after a second if it depends on the current time, otherwise
    at the end of the day in the site's time zone, because lists start today by default."""
    now = site.now()
    dates = [text for name, text in sent if isinstance(query.get(name), Moment)]
    if any(query.get(name) for name in TIME_DEPENDENT_PARAMETERS) or not all(
        is_fixed(text) for text in dates
    ):
        return now + timedelta(seconds=1)
    tomorrow = site.zone.to_wall(now).date() + timedelta(days=1)
    return site.zone.to_utc(datetime.combine(tomorrow, time()))
