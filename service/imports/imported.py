"""Finds imported records by the keys of what they were imported from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from bson import Binary

from schemas import KINDS
from schemas.kind import Kind
from service.mongo.client import Database
from service.mongo.instance import adopt_instance, read_origin

IMPORTED = {"import_key": 1, "import_hash": 1, "status": 1, "version": 1}
NEVER_IMPORTED = {"import_key": {"$exists": False}}


class Imported(NamedTuple):
    """An imported record: its id, the hash of the values it was imported with, its status and version."""

    id: int
    hash: bytes | None
    status: str
    version: int


def _imported(row: Mapping[str, Any]) -> Imported:
    return Imported(row["_id"], row.get("import_hash"), row.get("status", ""), row["version"])


class ImportedRecords:
    """The imported records of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, kind: Kind, keys: Iterable[bytes]) -> dict[bytes, Imported]:
        """The keys that were imported before, with their records."""
        return await self._find(kind, {"import_key": {"$in": [Binary(key) for key in keys]}})

    async def find_between(self, kind: Kind, ranges: Iterable[tuple[bytes, bytes]]) -> dict[bytes, Imported]:
        """The records with keys in any of the ranges; both ends must have the length of the keys."""
        either = [{"import_key": {"$gte": Binary(first), "$lte": Binary(last)}} for first, last in ranges]
        return await self._find(kind, {"$or": either}) if either else {}

    async def _find(self, kind: Kind, query: dict[str, object]) -> dict[bytes, Imported]:
        rows = self._database[kind.plural].find(query, IMPORTED)
        return {bytes(row["import_key"]): _imported(row) async for row in rows}

    async def keys_of(self, kind: Kind, ids: Sequence[int]) -> dict[int, bytes]:
        """The keys of the records that were imported, by id."""
        found = await self._find(kind, {"_id": {"$in": ids}, "import_key": {"$exists": True}})
        return {one.id: key for key, one in found.items()}

    async def find_other(self, kind: Kind, query: Mapping[str, Any]) -> Imported | None:
        """The record that the query matches, unless it was imported."""
        found = await self._database[kind.plural].find_one({**query, **NEVER_IMPORTED}, IMPORTED)
        return _imported(found) if found else None

    async def adopt(self, kind: Kind, key: bytes, query: Mapping[str, Any]) -> Imported | None:
        """Give a key to the record that the query matches, unless it was imported from elsewhere."""
        found = await self._database[kind.plural].find_one_and_update(
            {**query, **NEVER_IMPORTED}, {"$set": {"import_key": Binary(key)}}, IMPORTED
        )
        return _imported(found) if found else None

    async def origin(self) -> UUID:
        """Identifies this database as the one in which its records were created."""
        return await read_origin(self._database)

    async def begin_copy(self, instance: UUID) -> None:
        """Before an export is imported: an empty database takes on the identity of the exported one."""
        found = [await self._database[kind.plural].find_one({}, {"_id": 1}) for kind in KINDS]
        if not any(found):
            await adopt_instance(self._database, instance)

    async def taken_ids(self, id_space: str, ids: list[int]) -> set[int]:
        """The ids that records of any kind with the same id sequence already have."""
        plurals = [kind.plural for kind in KINDS if kind.id_space == id_space]
        rows = [self._database[plural].find({"_id": {"$in": ids}}, {"_id": 1}) for plural in plurals]
        return {row["_id"] for found in rows for row in await found.to_list(None)}
