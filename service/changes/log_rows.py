"""The rows of the change log, and its checkpoint."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from bson import Timestamp

from schemas import EVENT
from schemas.kind import Document
from schemas.site import Site
from service.changes.change import Change
from service.changes.feed import CHECKPOINT, ChangeFeed
from service.changes.list_fields import LIST_FIELDS, changed
from service.mongo.client import Database, Session, collections, find, in_transaction, utc

LOG = "changes"
"""The collection."""
WITH_NUMBER: Document = {"_id": {"$type": "number"}}
"""Matches records with an id that requests can name: other programs may have stored others."""
ROWS_PER_TRANSACTION = 1000
"""Rows that one transaction appends."""


class Checkpoint(NamedTuple):
    """The state of the log: the time up to which everything is logged, the last number, and the identity that
    the log gets when it is begun anew."""

    at: Timestamp = Timestamp(0, 1)
    number: int = 0
    log: str = ""


class LogRows:
    """Appends rows to the log."""

    def __init__(self, database: Database, site: Site, feed: ChangeFeed) -> None:
        self._database, self._site, self._feed = database, site, feed
        self._collection = collections(database)

    async def checkpoint(self) -> Checkpoint:
        found = await self._collection("meta").find_one({"_id": CHECKPOINT})
        return Checkpoint(found["at"], found["number"], found["log"]) if found else Checkpoint()

    async def append_changes(self, changes: Sequence[Change], read: Checkpoint, until: Timestamp) -> bool:
        """Append all changes between the time of the checkpoint, as it was read, and another one, and move
        the checkpoint there; return False if another process has moved it meanwhile."""
        number, at = read.number, read.at
        for change in (change for change in changes if change.is_move):
            rows = await self._events_of(change)
            # With its number: the time stays, and another process may be appending the same events.
            if not await self.append_rows(rows, {"at": at}, number):
                return False
            number += len(rows)
        for batch in batches(changes):
            rows = [row for change in batch if change.is_shown for row in self._rows_of(change)]
            end = until if batch[-1] is changes[-1] else batch[-1].at
            if not await self._append(rows, {"at": at}, {"$set": {"at": end}}):
                return False
            at = end
        return True

    async def append_rows(
        self, rows: Sequence[Document], condition: Document, number: int | None = None
    ) -> bool:
        """Append rows that are not from the change feed; the time of the checkpoint stays. Return False if
        the checkpoint does not meet the condition any more, or does not have this number."""
        for first in range(0, len(rows), ROWS_PER_TRANSACTION):
            last = {} if number is None else {"number": number + first}
            if not await self._append(rows[first : first + ROWS_PER_TRANSACTION], condition | last, {}):
                return False
        return True

    async def _events_of(self, change: Change) -> list[Document]:
        """Rows for the events of a category that was moved: they are in other lists now."""
        wanted = {"categories._id": change.id, **WITH_NUMBER}
        events = await self._feed.confirm(lambda: find(self._collection(EVENT.plural), wanted, {"_id": 1}))
        rows = self.rows(EVENT.plural, (event["_id"] for event in events), "changed", change.at)
        return [row | {"touched": ["categories"]} for row in rows]

    async def _append(self, rows: Sequence[Document], condition: Document, change: Document) -> bool:
        """Append rows and change the checkpoint, unless it does not meet the condition any more."""
        query, change = {"_id": CHECKPOINT, **condition}, {"$inc": {"number": len(rows)}, **change}

        async def work(session: Session) -> bool:
            before = await self._collection("meta").find_one_and_update(query, change, session=session)
            if before and rows:
                numbered = [{"_id": before["number"] + place, **row} for place, row in enumerate(rows, 1)]
                await self._collection(LOG).insert_many(numbered, session=session)
            return before is not None

        return await in_transaction(self._database, work)

    def _rows_of(self, change: Change) -> list[Document]:
        details: Document = {"touched": sorted(LIST_FIELDS & (change.touched or set()))}
        if change.was is not None and change.new is not None:
            details |= {"was": change.was, "now": changed(change.was, change.new)}
        return [row | details for row in self.rows(change.plural, [change.id], change.action, change.at)]

    def rows(self, plural: str, ids: Iterable[int], action: str, at: Timestamp) -> list[Document]:
        """A row for each record; none if its id is not a number, as no request can name it."""
        row = {"action": action, "at": utc(at), "expires_at": self._site.now() + self._site.changes_kept}
        return [{"kind": plural, "id": id, **row} for id in ids if isinstance(id, int)]


def batches(changes: Sequence[Change]) -> Iterator[list[Change]]:
    """Batches that end where the time changes: all changes of a transaction have the same time."""
    batch: list[Change] = []
    for _, same in groupby(changes, lambda change: change.at):
        batch += same
        if len(batch) >= ROWS_PER_TRANSACTION:
            yield batch
            batch = []
    if batch:
        yield batch


async def begin_log(database: Database) -> Document:
    """Begin the log anew: its rows are about records that were replaced. Return what to store in the
    checkpoint; the new identity makes all earlier tokens invalid. The numbers go on: another process may be
    appending rows."""
    await database[LOG].delete_many({})
    return {"log": secrets.token_hex(4)}
