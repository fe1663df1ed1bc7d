"""Import ledger: which lines were imported, and as which records.

A line gets its entry before its record is stored, and an open batch is kept on record for as long as entries
may lack their records. So if an import dies, the next one knows which records are missing, and stores them
under the ids reserved for them: no line is lost or stored twice, even if the first write succeeds after all.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from bson import Binary, ObjectId

from schemas.kind import Kind
from service.store.mongo.bulk_writes import insert_missing
from service.store.mongo.client import Database


class ImportLedger:
    """The import ledger for records of one kind."""

    def __init__(self, database: Database, kind: Kind) -> None:
        self._ledger = database["imports"]
        self._batches = database["importers"]
        self._records = database[kind.plural]
        self._kind = kind
        self._open: set[bytes] = set()
        """Digests of lines whose records are still to be stored."""

    async def known(self, marks: Iterable[bytes]) -> set[bytes]:
        """The digests of lines that were imported before."""
        return set(await self._given(marks)) - self._open

    async def _given(self, marks: Iterable[bytes]) -> dict[bytes, int]:
        rows = self._ledger.find({"_id": {"$in": [Binary(mark) for mark in marks]}})
        return {bytes(row["_id"]): row["record"] async for row in rows}

    @asynccontextmanager
    async def batch(self, marks: Sequence[bytes]) -> AsyncIterator[None]:
        """Record an open batch while its lines are stored."""
        note = {"_id": ObjectId(), "kind": self._kind.plural, "marks": [Binary(mark) for mark in marks]}
        await self._batches.insert_one(note)
        yield
        await self._batches.delete_one({"_id": note["_id"]})
        self._open.difference_update(marks)

    async def claim(self, desired: Mapping[bytes, int]) -> dict[bytes, int]:
        """Claim lines; return the id to store each under, without lines that another import has claimed."""
        rows = [{"_id": Binary(mark), "record": id} for mark, id in desired.items()]
        given = dict(desired)
        if rows and (there := await insert_missing(self._ledger, rows)):
            taken = await self._given(there)
            given |= taken
            for mark in taken.keys() - self._open:
                del given[mark]
        self._open |= given.keys()
        return given

    async def release(self, marks: Iterable[bytes]) -> None:
        """Release the claims on lines that cannot be stored."""
        if own := [Binary(mark) for mark in marks if mark in self._open]:
            await self._ledger.delete_many({"_id": {"$in": own}})

    async def unfinished(self) -> dict[Any, set[bytes]]:
        """Open batches, of crashed and of running imports -> the digests of lines without a record."""
        left: dict[Any, set[bytes]] = {}
        async for note in self._batches.find({"kind": self._kind.plural}):
            given = await self._given(note["marks"])
            rows = self._records.find({"_id": {"$in": list(given.values())}}, {"_id": 1})
            stored = {row["_id"] async for row in rows}
            left[note["_id"]] = {mark for mark, id in given.items() if id not in stored}
        return left

    @asynccontextmanager
    async def taken_over(self) -> AsyncIterator[None]:
        """Around an import: it takes over the lines that other imports have left, if it has the same ones."""
        before = await self.unfinished()
        self._open |= set().union(*before.values())
        yield
        after = await self.unfinished()
        done = [id for id in before if not after.get(id)]
        await self._batches.delete_many({"_id": {"$in": done}})
