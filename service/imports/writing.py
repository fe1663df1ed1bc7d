"""Writes imported records: into the database, or, in a dry run, nowhere."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from schemas.caller import Caller
from schemas.errors import DuplicateTermSlug, Problem
from schemas.kind import Document, Kind
from service.imports.creating import create_records
from service.imports.imported import Imported, ImportedRecords
from service.imports.item import Item
from service.imports.linking import LinkedIds
from service.imports.outcome import Result
from service.store import Store
from service.store.records.new_records import NewRecord

New = tuple[Item, Document]
"""An item and its validated data."""


class Writer(Protocol):
    """What becomes of the items that are new or changed."""

    @property
    def planned(self) -> Collection[bytes]:
        """The keys of records that would have been created in a dry run."""

    async def adopt(self, item: Item, ids: LinkedIds) -> Imported | None:
        """A record that was not imported, but is the same as the item, and now counts as imported."""

    async def update(self, item: Item, found: Imported, data: Document) -> bool:
        """Update a record; return whether that has changed it."""

    async def create(self, kind: Kind, new: Sequence[New]) -> list[tuple[Item, Result]]:
        """Create records; return what became of each."""


def same_record(item: Item, ids: LinkedIds, *, is_origin: bool) -> Document | None:
    """A query for the record that is the same as the item: the one with its id if it was exported from here,
    or a term with the same slug and parent."""
    if item.values is None:
        return None
    if is_origin:
        return {"_id": item.id}
    if item.kind.is_post or not item.values.get("slug"):
        return None
    return {"slug": item.values["slug"], "parent": ids.parent(item)}


class RecordWriter:
    """Writes into the database. `is_origin`: the source is an export of this database itself."""

    planned: Collection[bytes] = ()

    def __init__(self, store: Store, caller: Caller, *, is_origin: bool = False) -> None:
        self._store, self._caller, self._is_origin = store, caller, is_origin
        self._imported = ImportedRecords(store.database)

    async def adopt(self, item: Item, ids: LinkedIds) -> Imported | None:
        query = same_record(item, ids, is_origin=self._is_origin)
        return await self._imported.adopt(item.kind, item.key, query) if query else None

    async def update(self, item: Item, found: Imported, data: Document) -> bool:
        if "password" in data:
            data["password_hash"] = data.pop("password")
        if self._is_origin and found.hash is None:
            del data["import_hash"]  # it was not imported into this database
        if found.status == "trash" and item.values is not None:
            data = {"status": "publish", **data}  # it was cancelled in the source, and is no longer
        try:
            record = await self._store.update(item.kind, found.id, data, self._caller)
        except DuplicateTermSlug:
            data.pop("slug")
            record = await self._store.update(item.kind, found.id, data, self._caller)
        return bool(record["version"] != found.version)

    async def create(self, kind: Kind, new: Sequence[New]) -> list[tuple[Item, Result]]:
        taken = await self._taken_ids(kind, [item.id for item, _ in new if item.id])
        records: dict[NewRecord, Item] = {}
        for item, data in new:
            id = None if item.id in taken else item.id
            records[NewRecord(data, self._caller, import_key=item.key, id=id)] = item
        return await create_records(self._store.creator, kind, records)

    async def _taken_ids(self, kind: Kind, ids: list[int]) -> set[int]:
        """The ids that other records have, or that a running service may have reserved for new ones."""
        if not ids:
            return set()
        ranges = await self._store.ids.reserve_for_import(kind.id_space, max(ids))
        others = {id for id in ids if not any(first <= id <= last for first, last in ranges)}
        given = set() if self._is_origin else others  # deleted records get their ids back
        return given | await self._imported.taken_ids(kind.id_space, ids)


class DryRun:
    """Writes nothing, but finds what the validation of single fields does not, such as an end before the
    start."""

    def __init__(self, store: Store, *, is_origin: bool = False) -> None:
        self._imported, self._site = ImportedRecords(store.database), store.site
        self._is_origin = is_origin
        self.planned: set[bytes] = set()

    async def adopt(self, item: Item, ids: LinkedIds) -> Imported | None:
        query = same_record(item, ids, is_origin=self._is_origin)
        return await self._imported.find_other(item.kind, query) if query else None

    async def update(self, item: Item, found: Imported, data: Document) -> bool:
        if item.values is not None:
            item.kind.normalize(data, None, self._site)
        return True

    async def create(self, kind: Kind, new: Sequence[New]) -> list[tuple[Item, Result]]:
        return [(item, self._checked(item, data)) for item, data in new]

    def _checked(self, item: Item, data: Document) -> Result:
        try:
            item.kind.normalize(data, None, self._site)
        except Problem as problem:
            return problem
        self.planned.add(item.key)
        return "new"
