"""Equal names at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class Naming:
    """Gives each of those who want the same slug at the same time a number of its own, so that they need not
    wait for each other."""

    def __init__(self, look: Callable[[], Awaitable[int]], *, is_repeated: bool) -> None:
        self._look = look
        """Finds the first number that no record has."""
        self._looking = asyncio.Lock()
        self._given = 0
        self._gone = -1 if is_repeated else 0
        """As far as this the numbers are known to be taken. Most names are new: 1 is tried unseen."""

    async def next(self, refused: int = 0) -> int:
        """A number, or another one instead of that which was refused."""
        async with self._looking:
            if refused > self._gone:
                free = await self._look()
                if free == refused:  # it was refused for something else
                    return refused
                self._gone = self._given = max(self._given, free - 1)
        self._given += 1
        return self._given
