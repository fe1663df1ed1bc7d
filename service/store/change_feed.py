"""Change feed: all writes to events by any process, from MongoDB's change stream, read on demand."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from bson import Timestamp
from pymongo.change_stream import CollectionChangeStream
from pymongo.errors import PyMongoError

from schemas.event import EVENT
from service.store.event_changes import PIPELINE, Change, understood
from service.store.mongo.client import Database
from service.store.mongo.coalescing import Batcher

REMEMBERED = 4096
"""Number of changes kept in memory."""


class ChangeFeed:
    """The latest changes, numbered in order."""

    def __init__(self, database: Database) -> None:
        self._events = database[EVENT.plural]
        self._stream: CollectionChangeStream[dict[str, Any]] | None = None
        self._batch = Batcher[None, None](self._listen)
        self._heard: deque[Change] = deque(maxlen=REMEMBERED)
        self.number = 0
        """The number of the next change."""

    @property
    def oldest(self) -> int:
        return self.number - len(self._heard)

    def since(self, number: int) -> list[Change]:
        return list(islice(self._heard, number - self.oldest, None))

    async def catch_up(self) -> None:
        """Return when every write acknowledged before the call has been read."""
        await self._batch.load(None)

    async def keep_up(self) -> None:
        """Read new changes if the stream is open: a stream that is not read falls behind the oplog."""
        if self._stream is not None:
            await self.catch_up()

    async def _listen(self, _: Sequence[None]) -> dict[None, None]:
        is_open = self._stream is not None
        try:
            changes = await asyncio.to_thread(self._read)
            if not is_open:
                self._forget()  # a snapshot taken before the stream was opened may miss changes
            for change in changes:
                self._hear(change)
        except PyMongoError:
            await self.close()
            raise
        return {}

    def _read(self) -> list[dict[str, Any]]:
        """Read everything up to now in one go: thousands of changes cost a single thread switch."""
        if self._stream is None:
            self._stream = self._events.delegate.watch(
                PIPELINE, batch_size=1000, max_await_time_ms=1, start_at_operation_time=self._committed()
            )
        found = []
        while (change := self._stream.try_next()) is not None:
            found.append(change)
        return found

    def _committed(self) -> Timestamp | None:
        """The majority commit point, which every later snapshot includes. By default a stream starts
        at the last applied write: a write between the two would be in neither the snapshot nor the stream."""
        said = self._events.delegate.database.command("hello")
        at: Timestamp | None = said.get("lastWrite", {}).get("majorityOpTime", {}).get("ts")
        return at

    def _forget(self) -> None:
        """Drop all changes, so that totals that have not applied them are counted again."""
        self._heard.clear()
        self.number += 1

    def _hear(self, said: Mapping[str, Any]) -> None:
        change = understood(said)
        if change.touched is None or change.touched:
            self._heard.append(change)
            self.number += 1

    async def close(self) -> None:
        """Close the stream and drop all changes; the next read opens a new stream."""
        stream, self._stream = self._stream, None
        self._forget()
        if stream is not None:
            await asyncio.to_thread(stream.close)
