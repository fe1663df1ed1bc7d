"""Bulk creation of records, on the same path as single ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pymongo
from pymongo.errors import DuplicateKeyError

from schemas.caller import Caller
from schemas.errors import InvalidFields, Problem, Unavailable
from schemas.event import EVENT
from schemas.kind import Document, Kind
from service.store.links import category_tree
from service.store.records.drafting import Conflict, Drafts, Row
from service.store.records.import_ledger import ImportLedger
from service.store.records.reading import TRIES, Records

log = logging.getLogger("kalends.store")
PATIENCE = 60
"""Timeout for a batch, in seconds."""
PASSING = (DuplicateKeyError, InvalidFields)
"""Errors worth a retry: meanwhile the slug or name was taken, or the parent deleted."""


@dataclass
class Outcome:
    """Result of an import: lines stored, lines stored before, and refused lines with the reason."""

    imported: int = 0
    there: int = 0
    refused: dict[int, Problem] = field(default_factory=dict)

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(self.imported + other.imported, self.there + other.there, self.refused | other.refused)


class Bulk(Drafts):
    """Creates records of one kind in batches, and completes batches that a crashed import left unfinished."""

    def __init__(self, store: Records, kind: Kind, caller: Caller) -> None:
        super().__init__(store, kind, caller)
        self.ledger = ImportLedger(self.database, kind)
        self._preparing = asyncio.Lock()

    async def store(self, rows: Sequence[Row]) -> Outcome:
        """Store the rows that are not stored yet. Several batches may run concurrently."""
        if not rows:
            return Outcome()
        total, left = Outcome(), list(rows)
        with pymongo.timeout(PATIENCE):
            async with self.ledger.batch([row.mark for row in rows]):
                for _ in range(TRIES):
                    outcome, left = await self._try(left)
                    total += outcome
                    if not left:
                        break
                    self._forget()
                total += Outcome(refused={row.number: Unavailable() for row in left})
                await self.ledger.release(row.mark for row in rows if row.number in total.refused)
        return total

    async def _try(self, rows: list[Row]) -> tuple[Outcome, list[Row]]:
        """One attempt: the outcome, and the rows to retry after a conflict with another writer."""
        try:
            async with self._preparing:
                made, refused = await self._prepare_all(rows)
        except Conflict:
            return Outcome(), rows
        given = await self.ledger.claim({row.mark: record["_id"] for row, record in made})
        mine = {given[row.mark]: row for row, _ in made if row.mark in given}
        records = [record | {"_id": given[row.mark]} for row, record in made if row.mark in given]
        failed = await self._insert_all(records)
        there = {id for id, error in failed.items() if _is_there(error)}
        again = {id for id, error in failed.items() if isinstance(error, PASSING)} - there
        for id in failed.keys() - there - again:
            log.warning("line %d is not stored: %s", mine[id].number, failed[id])
            refused[mine[id].number] = Unavailable()
        outcome = Outcome(len(mine) - len(failed), len(made) - len(mine) + len(there), refused)
        return outcome, [mine[id] for id in sorted(again)]

    async def _insert_all(self, records: list[Document]) -> dict[int, Exception]:
        """Insert records; return errors by record id."""
        if self.kind is EVENT:
            failed, stale = await self._new_events.many(records)
            if stale:
                self._shared.forget()
            return failed
        failed = await self._inserts.many(self.kind.plural, [one for one in records if not one.get("parent")])
        for record in (record for record in records if record.get("parent")):
            try:
                await category_tree.insert(self.client, self.database, self.kind, record)
            except PASSING as error:
                failed[record["_id"]] = error
        return failed


def _is_there(error: Exception) -> bool:
    """Whether another import has stored the same line, under the same id."""
    return isinstance(error, DuplicateKeyError) and "_id" in (error.details or {}).get("keyPattern", ())


@asynccontextmanager
async def bulk(store: Records, kind: Kind, caller: Caller) -> AsyncIterator[Bulk]:
    """Open a bulk import; it also stores lines that a crashed import of the same data left unfinished."""
    way = Bulk(store, kind, caller)
    async with way.ledger.taken_over():
        yield way
    await way.counts.catch_up()
