"""Change feed: all changes to records by any process, from one change stream, which is read on demand."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from itertools import islice
from time import monotonic

import pymongo.database
from bson import ObjectId, Timestamp
from pymongo.command_cursor import CommandCursor

from schemas import KINDS
from schemas.errors import Problem, Unavailable
from service.changes.change import PIPELINE, Change, parse
from service.changes.restores import Restores
from service.mongo.client import HISTORY_LOST, LENIENT, Database, Result, Row, close_stream, utc
from service.mongo.coalescing import Batcher
from service.mongo.write_clock import Clock, WriteClock

MAX_ATTEMPTS = 10
"""How often a read is repeated because of restores or elections."""
MAX_EVENT_CHANGES = 4096
"""Number of changes to events kept in memory."""
CHECKPOINT = "change_log"
"""Id of a document in `meta`: changes are counted and logged up to its time `at`."""


class ChangeFeed:
    """Numbers the changes to records of all kinds. The number of changes seen so far is the feed's position:
    as long as it stays the same, everything that was read from the database is still current."""

    def __init__(self, database: Database) -> None:
        self._database: pymongo.database.Database[Row] = database.delegate.with_options(LENIENT)
        self._stream: CommandCursor[Row] | None = None
        self.clock = WriteClock(self._database)
        self.restores = Restores()
        self.time = Timestamp(0, 1)
        """The time up to which all changes were read."""
        self.unlogged: deque[Change] = deque()
        """Changes since the checkpoint of the change log."""
        self.begun_at = Timestamp(0, 1)
        """The time of that checkpoint, at which the stream began, or would have begun if it could be read."""
        self.has_lost_changes = False
        """Whether changes since that checkpoint cannot be read, so that all records must be compared."""
        self._must_reopen = False
        self.batcher = Batcher[None, None](self._read_on)
        self._events: deque[Change] = deque(maxlen=MAX_EVENT_CHANGES)
        self.next_event = 0
        """The number of the next change to an event."""
        self.position = 0
        """The position that was read last. What is loaded from now on is at least as current."""
        self._changed = dict.fromkeys((kind.plural for kind in KINDS), 0)
        self.last_change = Timestamp(0, 1)
        """The time of the last change, or at which the stream was opened; every later change is known."""

    @property
    def changed_at(self) -> datetime:
        """The time of the last change, in UTC."""
        return utc(self.last_change)

    @property
    def now(self) -> datetime:
        """The time by the clock of the primary, which changes have: that of this machine may be ahead."""
        return self.clock.now

    async def catch_up(self) -> int:
        """Read all changes that were acknowledged before the call, and return the position."""
        await self.batcher.load(None)
        self.restores.check()
        return self.position

    async def confirm(self, read: Callable[[], Awaitable[Result]]) -> Result:
        """Run a read, again if it may be outdated: if a restore has replaced the records meanwhile, or if it
        may have gone to a new primary that had not committed a write of its own term yet. Until then majority
        reads of a primary may be older than acknowledged writes."""
        for _ in range(MAX_ATTEMPTS):
            if not (self.clock.knows_primary and self.restores.is_ruled_out):
                await self.catch_up()
            generation, problem = self._generation, None
            try:
                result = await read()
            except Problem as error:
                problem = error
            knew_primary = self.clock.knows_primary
            if not self.restores.is_ruled_out:
                await self.catch_up()
            if knew_primary and self._generation == generation:
                if problem:
                    raise problem
                return result
        raise Unavailable

    @property
    def _generation(self) -> tuple[ObjectId | None, str | None]:
        """The election of the primary and the identity of the records, as they were read last."""
        return self.clock.last and self.clock.last.election, self.restores.records

    def has_changed(self, plural: str, position: int) -> bool:
        """Whether a record of this kind has changed since a position, not counting its usage counters."""
        return self._changed[plural] > position

    def events_since(self, number: int) -> list[Change] | None:
        """The changes to events from a number on; None if they are not in memory any more."""
        count = self.next_event - number
        return list(islice(reversed(self._events), count))[::-1] if count <= len(self._events) else None

    def drop_logged(self, until: Timestamp) -> None:
        while self.unlogged and self.unlogged[0].at <= until:
            self.unlogged.popleft()

    def reopen(self) -> None:
        """Begin at the checkpoint of the change log again, after it was repaired: the next call of `catch_up`
        opens a new stream. Not here, since a thread may be reading."""
        self._must_reopen = True

    async def _read_on(self, _: Sequence[None]) -> dict[None, None]:
        if self._must_reopen:
            self._must_reopen = False
            await self.close()
        was_open, started = self._stream is not None, monotonic()
        try:
            clock, is_new, changes = await self.clock.read(), False, list[Change]()
            if self._stream is None or clock != self.clock.last:
                is_new, changes = await asyncio.to_thread(self._read, clock)
        except Exception as error:  # the stream is not used again: what was taken from it is lost
            await self.close()
            is_lost = getattr(error, "code", None) == HISTORY_LOST and not self.has_lost_changes
            if not was_open:
                if not is_lost:
                    raise
                self.has_lost_changes = True
            return await self._read_on(())  # once more, with a new stream, which begins at the checkpoint
        self.clock.last, self.time, self.restores.read_at = clock, clock.time, started
        if is_new:
            self._forget()
            self.restores.notice()
            self.last_change = clock.time
        for change in changes:
            self._add(change)
        return {}

    def _read(self, clock: Clock) -> tuple[bool, list[Change]]:
        """Read all new changes (blocking) after the clock has moved; return whether the stream is a new one.
        All in one thread: thousands of changes cost a single thread switch, and the event loop goes on while
        they are parsed."""
        last, stream = self.clock.last, self._stream
        # After an election the cursor is on the old primary, which lags behind as a secondary. And what was
        # read from the new one before its clock may have been outdated.
        is_new = stream is None or last is None or clock.election != last.election
        if stream is None or is_new:
            self._stream, old = self._watch(clock.time), stream
            stream = self._stream
            close_stream(old)
        changes = self.restores.records_only(iter(stream.try_next, None))
        if not stream.alive:  # the database was dropped
            self._stream = None
        return is_new, [parse(change) for change in changes]

    def _watch(self, start: Timestamp) -> CommandCursor[Row]:
        # By default a stream starts at the last applied write. It may be later than the majority commit
        # point, at which snapshots are taken: a write between the two would be in neither.
        checkpoint = self.restores.learn(self._database, CHECKPOINT, start)
        # Once there is another checkpoint, everything before it was counted and logged, or was replaced.
        at: Timestamp | None = checkpoint["at"] if checkpoint else None
        self.has_lost_changes = at is None or (self.has_lost_changes and at == self.begun_at)
        if at and not self.has_lost_changes:
            self.begun_at, start = at, min(start, at)
        # Not `watch`: it would resume at a new primary which has not committed yet what the clock stands for.
        stage = {"$changeStream": {"startAtOperationTime": start}}
        return self._database.aggregate([stage, *PIPELINE], batchSize=1000, maxAwaitTimeMS=1)

    def _add(self, change: Change) -> None:
        self.position += 1
        self.last_change = max(self.last_change, change.at)
        if not change.is_counters_only:
            self._changed[change.plural] = self.position
        if change.is_listed:
            self._events.append(change)
            self.next_event += 1
        if change.is_logged:
            self.unlogged.append(change)

    def _forget(self) -> None:
        """Drop all changes, as some may be missing, and go to a position at which nothing was read yet."""
        self._events.clear()
        self.unlogged.clear()  # the stream begins at the checkpoint again
        self.next_event += 1
        self.position += 1
        self._changed = dict.fromkeys(self._changed, self.position)

    async def close(self) -> None:
        """Close the stream and the connection; the next call of `catch_up` opens new ones."""
        self.clock.close()
        stream, self._stream = self._stream, None
        await asyncio.to_thread(close_stream, stream)
