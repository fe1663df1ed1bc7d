"""The end of a process that serves, and how soon it is wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from enum import IntEnum
from typing import Any, TypeVar

T = TypeVar("T")


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
