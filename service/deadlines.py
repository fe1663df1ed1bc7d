"""Requests that take too long are given up."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

LOOKS = 0.5
"""Seconds between two looks at what is under way: a timer for every request would cost more than most."""


class Deadlines:
    """Tasks and when each must be done; those that are late are cancelled."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._due: dict[asyncio.Task[object], float] = {}
        self._late: set[asyncio.Task[object]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, task: asyncio.Task[object]) -> None:
        loop = task.get_loop()
        self._due[task] = loop.time() + self._seconds
        if self._timer is None:
            self._timer = loop.call_later(LOOKS, self._look, loop)

    def end(self, task: asyncio.Task[object]) -> bool:
        """Whether the task was late."""
        self._due.pop(task, None)
        is_late = task in self._late
        self._late.discard(task)
        return is_late

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        for task in list(self._overdue(loop.time())):
            del self._due[task]
            self._late.add(task)
            task.cancel()
        self._timer = loop.call_later(LOOKS, self._look, loop) if self._due else None

    def _overdue(self, now: float) -> Iterator[asyncio.Task[object]]:
        for task, due in self._due.items():  # in the order they came, so the first in time ends the search
            if due > now:
                return
            yield task


def finish_in_time(seconds: float) -> Middleware:
    deadlines = Deadlines(seconds)

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task
        deadlines.begin(task)
        try:
            return await handler(request)
        except asyncio.CancelledError:
            if not deadlines.end(task):
                raise
            task.uncancel()
            raise TimeoutError from None
        finally:
            deadlines.end(task)

    return middleware
