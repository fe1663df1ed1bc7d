"""Change log: every change to a record, numbered in one order for all readers.

Writers do not touch it. A background task takes what the change feed has read since the checkpoint, adds it
to the usage counters, and appends it to the log: soon after a write of its own process, and regularly for
those of others. One transaction appends the rows and moves the checkpoint, if it is still where it was read.
So each change is numbered once, whichever processes try, and whichever die. The checkpoint stores the last
number and the time up to which everything is counted and logged: there the change feed of a process begins.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from datetime import timedelta
from time import monotonic

from bson import Timestamp
from pymongo.errors import PyMongoError

from schemas import EVENT, KINDS
from schemas.errors import Unavailable
from schemas.kind import Document, Kind
from schemas.site import Site
from service.background import BackgroundTasks
from service.changes.change import REMOVED, REMOVED_TERMS, Change
from service.changes.feed import CHECKPOINT, ChangeFeed
from service.changes.log_rows import WITH_NUMBER, LogRows
from service.failures import Failures
from service.mongo.client import Database, collections, utc

log = logging.getLogger("kalends.store")
PAUSE_SECONDS = 1.0
"""From the beginning of an update to the next one, unless a reader waits: many changes are counted by few
updates. With a tenth of a second, creations on one connection, and lists while events change, are 10 %
slower."""
RETRY_SECONDS, MAX_WAIT_SECONDS = 0.05, 8.0
"""For a reader: the pause after an update that was not enough, and when it gives up."""
MAX_CHECKPOINT_AGE_SECONDS = 60
"""An older checkpoint is moved even if nothing has changed, so that it stays within the oplog."""
MAX_LOST_RECORDS = 50_000
"""Records of a kind that are logged after a loss. More could fill the oplog: changes would be lost again."""
CLOCK_ERROR = timedelta(hours=1)
"""By how much clocks of services may differ from that of MongoDB."""

Count = Callable[[Collection[Change], Timestamp], Awaitable[None]]
"""Adds changes to the usage counters: all up to a time since the checkpoint."""


class ChangeLog:
    """Counts and logs the changes of the change feed."""

    def __init__(
        self,
        database: Database,
        site: Site,
        feed: ChangeFeed,
        count: Count,
        tasks: BackgroundTasks,
    ) -> None:
        self._feed, self._count, self._tasks = feed, count, tasks
        self._rows, self._collection = LogRows(database, site, feed), collections(database)
        self.checkpoint = self._rows.checkpoint
        self._lock, self._failures = asyncio.Lock(), Failures(log, "updating the change log")
        self._scheduled: asyncio.Task[None] | None = None
        self._is_awaited = asyncio.Event()
        self._paused_until = 0.0

    async def catch_up(self) -> None:
        """Wait until every write that was acknowledged before the call is counted and logged."""
        await self._wait_for(lambda change: True)

    async def catch_up_counters(self) -> None:
        """Wait until every such write is counted: most of them change no counters."""
        await self._wait_for(lambda change: bool(change.transitions))

    async def _wait_for(self, is_wanted: Callable[[Change], bool]) -> None:
        await self._feed.catch_up()
        until, deadline = self._feed.time, monotonic() + MAX_WAIT_SECONDS
        while self._is_behind(until, is_wanted):
            await self.wait_for_update(max(0.0, deadline - monotonic()))
            if self._is_behind(until, is_wanted):  # another process was first, changes are lost, or it failed
                if monotonic() > deadline:
                    raise Unavailable
                await asyncio.sleep(RETRY_SECONDS)

    def _is_behind(self, until: Timestamp, is_wanted: Callable[[Change], bool]) -> bool:
        missing = (change for change in self._feed.unlogged if change.at <= until)
        return self._feed.has_lost_changes or any(map(is_wanted, missing))

    async def wait_for_update(self, seconds: float) -> None:
        """Wait some time for the next update in the background, which begins at once."""
        self.end_pause()
        await asyncio.wait({self.update_soon()}, timeout=seconds)

    def update_soon(self) -> asyncio.Task[None]:
        """Update in the background, at once or after the pause since the last update began."""
        if self._scheduled is None:
            self._scheduled = self._tasks.start(self._update_later(), "updating the change log")
        return self._scheduled

    def end_pause(self) -> None:
        """Let an update that waits for the end of the pause run now."""
        self._is_awaited.set()

    async def _update_later(self) -> None:
        with suppress(TimeoutError):  # the pause is over
            await asyncio.wait_for(self._is_awaited.wait(), max(0.0, self._paused_until - monotonic()))
        async with self._lock:
            self._is_awaited.clear()
            self._scheduled = None  # whoever comes from now on needs another one
            self._paused_until = monotonic() + PAUSE_SECONDS
            try:
                await self._update()
                self._failures.succeeded()
            except (PyMongoError, Unavailable) as error:
                self._failures.failed(error)

    async def update(self) -> None:
        """Count and log all writes that were acknowledged before the call."""
        async with self._lock:
            await self._update()

    async def _update(self) -> None:
        checkpoint = await self.checkpoint()
        await self._feed.catch_up()
        if self._feed.has_lost_changes:
            return  # the checkpoint must stay until all records are compared
        until = self._feed.time
        self._feed.drop_logged(checkpoint.at)
        if changes := [change for change in self._feed.unlogged if change.at <= until]:
            await self._count(changes, until)
            if await self._rows.append_changes(changes, checkpoint, until):
                self._feed.drop_logged(until)
        elif until.time > checkpoint.at.time + MAX_CHECKPOINT_AGE_SECONDS:
            await self._collection("meta").update_one({"_id": CHECKPOINT}, {"$max": {"at": until}})

    async def repair(self) -> bool:
        """Log the records that may have changed since the checkpoint: the changes themselves are lost. Return
        False if they are so many that the log must be begun anew."""
        checkpoint = await self.checkpoint()
        if not checkpoint.log:
            return True  # there is no log yet that anybody could have read
        since = {"$gte": utc(checkpoint.at) - CLOCK_ERROR}
        for kind in KINDS:
            records = self._collection(kind.plural)
            lost = await records.count_documents({"modified_utc": since}, limit=MAX_LOST_RECORDS + 1)
            if lost > MAX_LOST_RECORDS:
                return False
        for kind in KINDS:
            changed = self._collection(kind.plural).find({"modified_utc": since, **WITH_NUMBER}, {"_id": 1})
            await self._log_lost(kind, "changed", [row["_id"] async for row in changed])
            gone = self._collection(REMOVED_TERMS).find({"kind": kind.plural, "at": since})
            await self._log_lost(kind, REMOVED, [row["_id"] async for row in gone])
        await self._log_lost(EVENT, "changed", await self._events_below({"modified_utc": since}))
        return True

    async def _events_below(self, changed: Document) -> list[int]:
        """The ids of the events in and below the categories that a query finds: if one was moved, they are in
        other lists without a change of their own."""
        categories = self._collection("categories")
        ids = [row["_id"] async for row in categories.find(changed, {"_id": 1})]
        branch = {"$or": [{"_id": {"$in": ids}}, {"ancestors": {"$in": ids}}]}
        below = [row["_id"] async for row in categories.find(branch, {"_id": 1})]
        wanted = {"categories._id": {"$in": below}, **WITH_NUMBER}
        return [row["_id"] async for row in self._collection(EVENT.plural).find(wanted, {"_id": 1})]

    async def _log_lost(self, kind: Kind, action: str, ids: Sequence[int]) -> None:
        at = (await self.checkpoint()).at
        rows = self._rows.rows(kind.plural, ids, action, at)
        await self._rows.append_rows([row | {"is_lost": True} for row in rows], {})
