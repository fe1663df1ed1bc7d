"""Restores, as every process that uses the database sees them.

While a restore replaces the records, a marker is stored in `meta`, and no process reads or writes them. The
change feed reports the marker. A process relies on what it knows for a second at most, and the restore waits
longer than that, so that nobody uses the records while they are replaced.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import datetime
from time import monotonic

import pymongo.database
from bson import Timestamp
from pymongo.errors import PyMongoError

from schemas.errors import UnderRestore
from schemas.kind import Document
from service.mongo.client import Database, utc

MARKER = "restore_under_way"
"""Id of a document in `meta` that exists while a restore replaces the records."""
FRESH_SECONDS = 1.0
"""How long a process relies on what it knows about restores."""
REPLACING = (
    "a restore is replacing all records, and every request is answered with 503; "
    "if it was interrupted, run `kalends restore` again"
)
log = logging.getLogger("kalends.store")


class StreamOutdated(PyMongoError):
    """A restore has begun or ended since the change stream was opened: another one must be opened."""


class RestoreUnderWay(Exception):
    """A database cannot be opened: its records are being replaced."""

    def __init__(self) -> None:
        super().__init__(REPLACING)


async def refuse_restore(database: Database) -> None:
    """Raise RestoreUnderWay while a restore replaces the records, and if it was interrupted then."""
    if await database["meta"].find_one({"_id": MARKER}):
        raise RestoreUnderWay


class Restores:
    """What a process knows about restores."""

    def __init__(self) -> None:
        self.is_under_way, self._is_marked = False, False
        self.records: str | None = None
        """Identifies the set of all records: a restore gives it another identity."""
        self.replaced_at = datetime.min
        """The time at which all records were replaced last, in UTC."""
        self.on_replaced: Callable[[], None] = lambda: None
        """Called after all records were replaced."""
        self._learned: str | None = None
        self._known_until = Timestamp(0, 1)
        self.read_at = 0.0
        """When the last successful read of the change feed began, by the monotonic clock."""

    @property
    def is_ruled_out(self) -> bool:
        """Whether no restore can be replacing the records now."""
        return not self.is_under_way and monotonic() - self.read_at < FRESH_SECONDS

    def check(self) -> None:
        """Raise UnderRestore while the records are replaced."""
        if self.is_under_way:
            raise UnderRestore

    def require(self, records: str | None) -> None:
        """Raise UnderRestore unless the records still have this identity: what was made from others must not
        be written."""
        if self.records != records:
            raise UnderRestore

    def learn(
        self, database: pymongo.database.Database[Document], checkpoint: str, until: Timestamp
    ) -> Document | None:
        """Read the marker and the checkpoint of the change log (blocking), and return the checkpoint. What
        was read takes effect only when `notice` is called: this runs in a thread, and until then the caches
        hold the old records."""
        rows = {row["_id"]: row for row in database["meta"].find({"_id": {"$in": [checkpoint, MARKER]}})}
        found: Document | None = rows.get(checkpoint)
        self._is_marked, self._known_until = MARKER in rows, until
        self._learned = found.get("log") if found else None
        return found

    def records_only(self, changes: Iterable[Document]) -> list[Document]:
        """The changes to records; raises StreamOutdated if a restore has begun or ended since `learn`."""
        found = list(changes)
        markers = [one for one in found if one["ns"]["coll"] == "meta"]
        if any(one["clusterTime"] > self._known_until for one in markers):
            raise StreamOutdated
        return [one for one in found if one["ns"]["coll"] != "meta"] if markers else found

    def notice(self) -> None:
        """Act on what was learned."""
        if self._is_marked and not self.is_under_way:
            log.warning(REPLACING)
        self.is_under_way = self._is_marked
        if self.is_under_way or self._learned is None:
            return
        if self.records not in (None, self._learned):
            log.info("the records were replaced, or their change log was begun anew: caches are dropped")
            self.replaced_at = utc(self._known_until)
            self.on_replaced()
        self.records = self._learned
