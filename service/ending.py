"""The end of a process that serves: how soon it is wanted, and how no request is lost by it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from contextlib import suppress
from enum import IntEnum
from typing import Any, TypeVar

from aiohttp import web
from aiohttp.typedefs import Handler

T = TypeVar("T")
GRACE = 20.0
"""Seconds that requests under way get to finish."""
PAUSE = 0.1
"""Seconds between looks at the connections that are left, and before the first one is closed."""


class Haste(IntEnum):
    """How soon a process shall end."""

    RETIRE = 1
    """Another one takes over: a quiet connection is kept until its next answer, or its usual end."""
    STOP = 2
    """Nobody takes over: quiet connections are closed, requests under way are finished."""
    NOW = 3
    """Requests under way are given up."""


class Ending:
    """What a process has been told about its end; the most urgent word counts."""

    def __init__(self) -> None:
        self._asked = {haste: asyncio.Event() for haste in Haste}

    def ask(self, haste: Haste) -> None:
        for event in (event for one, event in self._asked.items() if one <= haste):
            event.set()

    def is_asked(self, haste: Haste) -> bool:
        return self._asked[haste].is_set()

    async def wait(self, haste: Haste) -> None:
        await self._asked[haste].wait()

    async def unless_asked(self, work: Coroutine[Any, Any, T]) -> T | None:
        """What the work returns; nothing if an end is asked for before it does."""
        task, asked = asyncio.create_task(work), asyncio.create_task(self.wait(Haste.RETIRE))
        await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
        return None if task.cancelled() else task.result()


class Traffic:
    """The connections of a server, and which of them have a request under way.

    aiohttp's own shutdown reads no more from any connection: a body that is still arriving never ends, and
    an answer does not tell its client that the connection closes.
    """

    def __init__(self, app: web.Application) -> None:
        self._busy: set[object] = set()
        self._is_ending = False
        app.middlewares.insert(0, self._count)
        app.on_response_prepare.append(self._say_goodbye)

    @web.middleware
    async def _count(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        connection = request.protocol
        self._busy.add(connection)
        try:
            return await handler(request)
        finally:
            self._busy.discard(connection)

    async def _say_goodbye(self, _: web.Request, response: web.StreamResponse) -> None:
        if self._is_ending:
            response.force_close()
            response.headers["Connection"] = "close"

    async def end(self, runner: web.AppRunner, taken: socket.socket, ending: Ending) -> None:
        """Takes no new connection, and returns when the last one has ended or must be given up."""
        self._is_ending = True
        asyncio.get_running_loop().remove_reader(taken)
        await asyncio.sleep(0)  # what was taken last becomes a connection before its server is closed
        for site in runner.sites:
            await site.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await self._come_to_rest(runner, ending)

    async def _come_to_rest(self, runner: web.AppRunner, ending: Ending) -> None:
        assert runner.server
        while runner.server.connections and not ending.is_asked(Haste.NOW):
            await asyncio.sleep(PAUSE)
            if ending.is_asked(Haste.STOP):
                for connection in set(runner.server.connections) - self._busy:
                    connection.force_close()
