"""Shutdown requests to a serving process, by urgency."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from enum import IntEnum
from typing import Any, TypeVar

T = TypeVar("T")


class Urgency(IntEnum):
    """How urgently a process must shut down."""

    RETIRE = 1
    """Another process takes over: idle connections stay open until their next response or their timeout."""
    STOP = 2
    """No other process takes over: idle connections are closed, requests in flight are completed."""
    NOW = 3
    """Requests in flight are aborted."""


class Shutdown:
    """The shutdown requests that a process has received; the most urgent one counts."""

    def __init__(self) -> None:
        self._events = {urgency: asyncio.Event() for urgency in Urgency}

    def request(self, urgency: Urgency) -> None:
        for event in (event for one, event in self._events.items() if one <= urgency):
            event.set()

    def is_requested(self, urgency: Urgency) -> bool:
        return self._events[urgency].is_set()

    async def wait(self, urgency: Urgency) -> None:
        await self._events[urgency].wait()

    async def unless_requested(self, work: Coroutine[Any, Any, T]) -> T | None:
        """The result of the work; None if a shutdown is requested first, which cancels the work."""
        task, requested = asyncio.create_task(work), asyncio.create_task(self.wait(Urgency.RETIRE))
        await asyncio.wait({task, requested}, return_when=asyncio.FIRST_COMPLETED)
        requested.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
        return None if task.cancelled() else task.result()
