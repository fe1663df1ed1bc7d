"""A cache of list responses, valid until anything is written to the database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any

from handlers.memory import Drawer, Memory
from handlers.ports import Store
from handlers.replies import Answer
from schemas.dates import Moment, is_fixed
from schemas.site import Site

MOVING = ("strict_dates", "only_with_upcoming")
"""Parameters whose results depend on the current time."""
Key = tuple[Hashable, ...]


@dataclass(frozen=True)
class Entry:
    """A cached response, valid for one clock of the database and within a time span."""

    answer: Answer
    clock: Hashable
    since: datetime
    until: datetime

    def holds(self, clock: Hashable, now: datetime) -> bool:
        return self.clock == clock and self.since <= now < self.until


class Kept:
    """Cached responses by request, with one computation in flight per key. Each request first asks for the
    database's current clock, so it never gets a response that was stale when it arrived."""

    def __init__(self, store: Store, memory: Memory) -> None:
        self._store = store
        self._memory = Drawer[Entry](memory, "kept")
        self._making: dict[Key, asyncio.Task[Answer]] = {}

    async def answer(self, key: Key, make: Callable[[], Awaitable[tuple[Answer, datetime]]]) -> Answer:
        """The response for a key. `make` computes it, and when it expires if nothing is written."""
        clock = await self._store.clock.read()
        if clock is None:
            return (await make())[0]
        entry = self._memory.take(key)
        if entry and entry.holds(clock, self._store.site.now()):
            return entry.answer
        if (task := self._making.get((clock, *key))) is None:
            task = asyncio.create_task(self._made(key, clock, make))
            self._making[clock, *key] = task
            task.add_done_callback(lambda _: self._making.pop((clock, *key)))
        return await asyncio.shield(task)

    async def _made(
        self, key: Key, clock: Hashable, make: Callable[[], Awaitable[tuple[Answer, datetime]]]
    ) -> Answer:
        since = self._store.site.now()
        answer, until = await make()
        self._memory.keep(key, Entry(answer, clock, since, until), answer.size)
        return answer


def holds_until(query: Mapping[str, Any], sent: Iterable[tuple[str, str]], site: Site) -> datetime:
    """When a list expires if nothing is written: after a second if it depends on the current time, otherwise
    at the end of the day in the site's time zone, because lists start today by default."""
    now = site.now()
    dates = [text for name, text in sent if isinstance(query.get(name), Moment)]
    if any(query.get(name) for name in MOVING) or not all(is_fixed(text) for text in dates):
        return now + timedelta(seconds=1)
    tomorrow = site.zone.to_wall(now).date() + timedelta(days=1)
    return site.zone.to_utc(datetime.combine(tomorrow, time()))
