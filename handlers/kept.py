"""Whole answers, kept for as long as the database says that nothing was written."""

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
"""Parameters that make every second count."""
Key = tuple[Hashable, ...]


@dataclass(frozen=True)
class Entry:
    """An answer, and when it is true: in one generation of the database, within a span of time."""

    answer: Answer
    generation: Hashable
    since: datetime
    until: datetime

    def holds(self, generation: Hashable, now: datetime) -> bool:
        return self.generation == generation and self.since <= now < self.until


class Kept:
    """Answers by what was asked. Each request asks for the generation first, so that none is answered with
    what was true only before it came."""

    def __init__(self, store: Store, memory: Memory) -> None:
        self._store = store
        self._memory = Drawer[Entry](memory, "kept")
        self._making: dict[Key, asyncio.Task[Answer]] = {}

    async def answer(self, key: Key, make: Callable[[], Awaitable[tuple[Answer, datetime]]]) -> Answer:
        """The answer to a key. `make` makes it, and says until when it holds if nothing is written."""
        generation = await self._store.generation.now()
        if generation is None:
            return (await make())[0]
        entry = self._memory.take(key)
        if entry and entry.holds(generation, self._store.site.now()):
            return entry.answer
        if (task := self._making.get((generation, *key))) is None:
            task = asyncio.create_task(self._made(key, generation, make))
            self._making[generation, *key] = task
            task.add_done_callback(lambda _: self._making.pop((generation, *key)))
        return await asyncio.shield(task)

    async def _made(
        self, key: Key, generation: Hashable, make: Callable[[], Awaitable[tuple[Answer, datetime]]]
    ) -> Answer:
        since = self._store.site.now()
        answer, until = await make()
        self._memory.keep(key, Entry(answer, generation, since, until), answer.size)
        return answer


def holds_until(query: Mapping[str, Any], sent: Iterable[tuple[str, str]], site: Site) -> datetime:
    """How long a list stays the same if nothing is written: the present second where it looks at the clock,
    else the present day of the site, since lists begin today."""
    now = site.now()
    dates = [text for name, text in sent if isinstance(query.get(name), Moment)]
    if any(query.get(name) for name in MOVING) or not all(is_fixed(text) for text in dates):
        return now + timedelta(seconds=1)
    tomorrow = site.zone.to_wall(now).date() + timedelta(days=1)
    return site.zone.to_utc(datetime.combine(tomorrow, time()))
