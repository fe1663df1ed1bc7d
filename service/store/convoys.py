"""Writers that set out together, so that at each step their questions meet in one batch."""

from __future__ import annotations

import asyncio
from types import TracebackType

FULL = 16
"""Writers that do not wait any longer for those before them."""
PATIENCE = 0.5
"""Seconds that one waits at most: those before may have a long way."""


class Convoy:
    """Who comes while nobody is on the way goes at once. Others wait until the road is free, or until they
    are many. Without it they would go one behind the other, and each ask for itself."""

    def __init__(self) -> None:
        self._on_the_way = 0
        self._waiting: list[asyncio.Future[None]] = []

    async def __aenter__(self) -> None:
        if self._on_the_way:
            await self._turn()
        self._on_the_way += 1

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._on_the_way -= 1
        if not self._on_the_way:
            self._depart()

    async def _turn(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        if len(self._waiting) >= FULL:
            self._depart()
        await asyncio.wait({turn}, timeout=PATIENCE)

    def _depart(self) -> None:
        leaving, self._waiting = self._waiting, []
        for turn in leaving:
            if not turn.done():
                turn.set_result(None)
