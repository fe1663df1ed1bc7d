"""Batches concurrent inserts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pymongo.errors import BulkWriteError, DuplicateKeyError, WriteError

from service.store.mongo.client import DUPLICATE, Collection, Database, collections
from service.store.mongo.coalescing import Batcher


@dataclass(frozen=True, eq=False)
class Insertion:
    """One record to insert."""

    plural: str
    record: dict[str, Any]


class Inserts:
    """Inserts records in batches; each succeeds or fails independently of the others."""

    def __init__(self, database: Database) -> None:
        self._collection = collections(database)
        self._batch = Batcher[Insertion, Exception](self._store)

    async def one(self, plural: str, record: dict[str, Any]) -> None:
        """Insert a record; raises DuplicateKeyError if its id, slug or claim is taken."""
        if refused := await self._batch.load(Insertion(plural, record)):
            raise refused

    async def _store(self, asked: Sequence[Insertion]) -> dict[Insertion, Exception]:
        records: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for one in asked:
            records[one.plural].append(one.record)
        refused = {plural: await self.many(plural, many) for plural, many in records.items()}
        return {one: error for one in asked if (error := refused[one.plural].get(one.record["_id"]))}

    async def many(self, plural: str, records: Sequence[dict[str, Any]]) -> dict[int, Exception]:
        """Insert records; return errors by record id."""
        if not records:
            return {}
        try:
            await self._collection(plural).insert_many(records, ordered=False)
        except BulkWriteError as error:
            if error.details["writeConcernErrors"]:
                raise
            return {one["op"]["_id"]: refusal(one) for one in error.details["writeErrors"]}
        return {}


async def insert_missing(collection: Collection, rows: Sequence[dict[str, Any]]) -> list[Any]:
    """Insert the rows that do not exist yet; return the ids of those that do."""
    try:
        await collection.insert_many(rows, ordered=False)
    except BulkWriteError as error:
        failed = error.details["writeErrors"]
        if any(one["code"] != DUPLICATE for one in failed):
            raise
        return [one["op"]["_id"] for one in failed]
    return []


def refusal(said: dict[str, Any]) -> Exception:
    """The exception that a single insert would have raised."""
    kind = DuplicateKeyError if said["code"] == DUPLICATE else WriteError
    return kind(said["errmsg"], said["code"], said)
