"""Slug numbers for concurrent creations with the same name."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class Naming:
    """Gives each concurrent writer that wants the same slug a different number, so that they need not wait
    for each other."""

    def __init__(self, look: Callable[[], Awaitable[int]], *, is_repeated: bool) -> None:
        self._look = look
        """Finds the first number that no record uses."""
        self._looking = asyncio.Lock()
        self._given = 0
        self._gone = -1 if is_repeated else 0
        """Numbers up to this are known to be taken. Most names are new, so 1 is tried without a look-up."""

    async def next(self, refused: int = 0) -> int:
        """The next number, or a replacement for one that was refused."""
        async with self._looking:
            if refused > self._gone:
                free = await self._look()
                if free == refused:  # refused for another reason
                    return refused
                self._gone = self._given = max(self._given, free - 1)
        self._given += 1
        return self._given
