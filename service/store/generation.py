"""The generation of the database: as long as it is the same, no write was made."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Hashable, Mapping, Sequence
from typing import Any

from service.store.batches import Batch
from service.store.client import Database
from service.store.pulse import Pulse

NOW = "now"
REST = 500
"""Questions that are left to the driver after the short way has failed."""


async def nothing() -> None:
    return None


class Generation:
    """Asks a replica set for the time of the last write that a majority has. What was read after asking
    is as current as the answer; an equal answer later means that it still is."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pulse = Pulse(database.client)
        self._rest = 0
        self._batch = Batch[str, Hashable](self._look)
        self.is_told = True
        self.last: Hashable | None = None
        """What was told last. Read after that, a record is at least as current."""

    def now(self) -> Awaitable[Hashable | None]:
        """None where there is no such time: behind a router of shards it would tell of one shard only."""
        return self._batch.ask(NOW) if self.is_told else nothing()

    async def _look(self, _: Sequence[str]) -> Mapping[str, Hashable]:
        said = await self._hello()
        written = said.get("lastWrite", {}).get("majorityOpTime")
        if not written:
            self.is_told = said.get("setName") is not None
            return {}
        self.last = (written["t"], written["ts"].time, written["ts"].inc)
        return {NOW: self.last}

    async def _hello(self) -> Mapping[str, Any]:
        if not self._rest:
            try:
                return await self._pulse.feel()
            except OSError:  # a TimeoutError is one, too
                self._rest = REST
        self._rest -= 1
        return await self._database.command("hello")

    async def close(self) -> None:
        self._pulse.close()
        await asyncio.sleep(0)  # the event loop closes a connection in its next round
