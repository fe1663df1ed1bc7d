"""Group commit: concurrent writers start together, so that at each step their queries form one batch."""

from __future__ import annotations

import asyncio
from types import TracebackType

FULL = 16
"""A waiting group of this size starts, however many writers are active."""
PATIENCE = 0.5
"""Maximum wait for a group, in seconds: active writers may be slow."""


class Convoy:
    """A writer starts at once if none is active; otherwise it joins the next group, which starts when it is
    as large as the active one. So one half computes while the other waits for the database; without groups,
    writers would run staggered and send their queries one by one."""

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
