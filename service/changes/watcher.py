"""Waits for changes by any process."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from pymongo.errors import PyMongoError

from schemas.errors import UnderRestore
from service.changes.feed import ChangeFeed

POLL_SECONDS = 0.5
"""Pause between two looks for changes."""


class ChangeWatcher:
    """Wakes all who wait for changes. While anybody does, one task reads the change feed for all of them."""

    def __init__(self, feed: ChangeFeed) -> None:
        self._feed = feed
        self._reading: asyncio.Task[None] | None = None

    async def wait(self, position: int) -> None:
        """Wait until the change feed has left a position."""
        while self._feed.position == position:
            if self._reading is None or self._reading.done():
                self._reading = asyncio.create_task(self._read_later())
            await asyncio.shield(self._reading)

    async def _read_later(self) -> None:
        await asyncio.sleep(POLL_SECONDS)
        with suppress(PyMongoError, UnderRestore):  # nothing changes until the database is available
            await self._feed.catch_up()
