"""Requests in flight: concurrency limit, timeouts and graceful shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from aiohttp import web
from aiohttp.typedefs import Handler

from config import Settings
from schemas.errors import Unavailable
from schemas.language import Text
from service.door import Door
from service.ending import Ending, Haste

GRACE = 20.0
"""Seconds that requests in flight get to complete during shutdown."""
PAUSE = 0.1
"""Seconds between checks of the remaining connections, and before the first one is closed."""
LOOKS = 0.5
"""Seconds between checks for overdue requests: a timer for each request would be too expensive."""


def is_health(request: web.Request) -> bool:
    """Health checks are exempt from the rate and concurrency limits."""
    return request.path.startswith("/health/")


@dataclass(eq=False, slots=True)
class Passage:
    """One request in flight."""

    connection: object
    task: asyncio.Task[object]
    due: float
    is_late: bool = False


class Traffic:
    """All requests in flight, in order of arrival."""

    def __init__(self, settings: Settings) -> None:
        self._most = settings.max_concurrent
        self._seconds = settings.request_seconds
        self._under_way: dict[Passage, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._is_ending = False

    @web.middleware
    async def let_pass(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Reject requests above the concurrency limit, and cancel those that exceed the time limit."""
        if len(self._under_way) >= self._most and not is_health(request):
            raise Unavailable(Text("The service is busy; try again."))
        passage = self._begin(request)
        try:
            return await handler(request)
        except asyncio.CancelledError:
            if not passage.is_late:
                raise
            passage.task.uncancel()
            raise TimeoutError from None
        finally:
            del self._under_way[passage]

    def say_goodbye(self, answer: web.StreamResponse) -> None:
        if self._is_ending:
            answer.force_close()

    def _begin(self, request: web.Request) -> Passage:
        task = asyncio.current_task()
        assert task
        loop = task.get_loop()
        passage = Passage(request.protocol, task, loop.time() + self._seconds)
        self._under_way[passage] = None
        if self._timer is None:
            self._timer = loop.call_later(LOOKS, self._look, loop)
        return passage

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        for passage in list(self._overdue(loop.time())):
            passage.is_late = True
            passage.task.cancel()
        self._timer = loop.call_later(LOOKS, self._look, loop) if self._under_way else None

    def _overdue(self, now: float) -> Iterator[Passage]:
        for passage in self._under_way:
            if passage.due > now:
                return
            if not passage.is_late:
                yield passage

    async def end(self, server: web.Server, door: Door, ending: Ending) -> None:
        """Stop accepting connections; return when the last one has closed or the grace period is over.

        aiohttp's own shutdown stops reading from all connections: a body still being received would never be
        complete, and responses would not announce that the connection closes.
        """
        self._is_ending = True
        await door.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await self._come_to_rest(server, ending)

    async def _come_to_rest(self, server: web.Server, ending: Ending) -> None:
        while server.connections and not ending.is_asked(Haste.NOW):
            await asyncio.sleep(PAUSE)
            if ending.is_asked(Haste.STOP):
                quiet = set(server.connections) - self._busy()
                await asyncio.sleep(0)  # a response that is ready is sent in the next iteration of the loop
                for connection in quiet - self._busy():
                    connection.force_close()

    def _busy(self) -> set[object]:
        return {passage.connection for passage in self._under_way}


TRAFFIC = web.AppKey("traffic", Traffic)
