"""Write clock: the time of the last write, by which caches know whether their data is fresh."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Hashable, Mapping, Sequence
from typing import Any

from service.store.mongo.client import Database
from service.store.mongo.coalescing import Batcher
from service.store.pulse import Pulse

NOW = "now"
REST = 500
"""Requests sent through the driver after the direct connection has failed, before it is tried again."""


async def nothing() -> None:
    return None


class WriteClock:
    """Reads the time of the replica set's last majority-committed write. Data that is loaded after reading it
    stays current until the time changes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pulse = Pulse(database.client)
        self._rest = 0
        self._batch = Batcher[str, Hashable](self._look)
        self.is_told = True
        """Whether the server reports such a time."""
        self.last: Hashable | None = None
        """The last time that was read. Records loaded later are at least as current."""

    def read(self) -> Awaitable[Hashable | None]:
        """Read the time; None if there is none: behind mongos it would be that of a single shard."""
        return self._batch.load(NOW) if self.is_told else nothing()

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
            except OSError:  # includes TimeoutError
                self._rest = REST
        self._rest -= 1
        return await self._database.command("hello")

    async def close(self) -> None:
        self._pulse.close()
        await asyncio.sleep(0)  # the event loop closes the connection in its next iteration
