"""New records that are stored at the same time go to the database together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from pymongo.errors import BulkWriteError, DuplicateKeyError, WriteError

from service.store.batches import Batch
from service.store.client import DUPLICATE, Database

Key = tuple[str, int]


class Inserts:
    """Each record is stored or refused by itself, whatever becomes of those beside it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: dict[Key, dict[str, Any]] = {}
        self._batch = Batch[Key, Exception](self._store)

    async def one(self, plural: str, record: dict[str, Any]) -> None:
        """Stores a record; DuplicateKeyError if its id, slug or claim is taken."""
        key = (plural, record["_id"])
        self._waiting[key] = record
        if refused := await self._batch.ask(key):
            raise refused

    async def _store(self, keys: Sequence[Key]) -> dict[Key, Exception]:
        records: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for plural, id in keys:
            records[plural].append(self._waiting.pop((plural, id)))
        refused: dict[Key, Exception] = {}
        for plural, many in records.items():
            refused |= {(plural, id): error for id, error in (await self._many(plural, many)).items()}
        return refused

    async def _many(self, plural: str, records: list[dict[str, Any]]) -> dict[int, Exception]:
        try:
            await self._database[plural].insert_many(records, ordered=False)
        except BulkWriteError as error:
            if error.details["writeConcernErrors"]:
                raise
            return {one["op"]["_id"]: refusal(one) for one in error.details["writeErrors"]}
        return {}


def refusal(said: dict[str, Any]) -> Exception:
    """What a single insert would have raised."""
    kind = DuplicateKeyError if said["code"] == DUPLICATE else WriteError
    return kind(said["errmsg"], said["code"], said)
