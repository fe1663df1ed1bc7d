"""Writers that set out together, so that at each step their questions meet in one batch."""

from __future__ import annotations

import asyncio
from types import TracebackType

FULL = 16
"""Writers that do not wait any longer for those before them."""
PATIENCE = 0.5
"""Seconds that the first of them waits at most: those before may have a long way."""


class Convoy:
    """Who comes while nobody is on the way goes at once. Others wait until they are as many as those who are:
    one half does its work while the other waits for the database. Without it they would go one behind the
    other, and each ask for itself."""

    def __init__(self) -> None:
        self._on_the_way = 0
        self._waiting: list[asyncio.Future[None]] = []
        self._alarm: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> None:
        if self._on_the_way:
            await self._turn()
        self._on_the_way += 1

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._on_the_way -= 1
        if self._are_enough():
            self._depart()

    def _turn(self) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        if self._are_enough():
            self._depart()
        elif self._alarm is None:
            self._alarm = loop.call_later(PATIENCE, self._depart)
        return turn

    def _are_enough(self) -> bool:
        return len(self._waiting) >= min(FULL, self._on_the_way)

    def _depart(self) -> None:
        if self._alarm:
            self._alarm.cancel()
        leaving, self._waiting, self._alarm = self._waiting, [], None
        for turn in leaving:
            if not turn.done():
                turn.set_result(None)
