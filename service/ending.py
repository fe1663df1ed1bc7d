"""Shutdown requests to a serving process, by urgency."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from enum import IntEnum
from typing import Any, TypeVar

T = TypeVar("T")


class Haste(IntEnum):
    """How urgently a process must shut down."""

    RETIRE = 1
    """Another process takes over: idle connections stay open until their next response or their timeout."""
    STOP = 2
    """No other process takes over: idle connections are closed, requests in flight are completed."""
    NOW = 3
    """Requests in flight are aborted."""


class Ending:
    """The shutdown requests that a process has received; the most urgent one counts."""

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
        """The result of the work; None if a shutdown is requested first, which cancels the work."""
        task, asked = asyncio.create_task(work), asyncio.create_task(self.wait(Haste.RETIRE))
        await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
        return None if task.cancelled() else task.result()
