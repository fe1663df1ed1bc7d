"""Stores the records that a reader yields: creates new ones, updates changed ones, and leaves the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pymongo

from schemas.caller import Caller
from schemas.errors import DuplicateTermSlug, InvalidFields, Problem, Unavailable
from schemas.kind import Document, Kind, load_valid
from service.imports.batches import slices
from service.imports.import_rows import BATCH_SECONDS
from service.imports.item import Entry, Item, Refusal, Series
from service.imports.linking import LinkedIds, MissingLink, linked_ids
from service.imports.outcome import Outcome, reasons_of
from service.imports.settled import is_settled
from service.store import Store
from service.store.records.creation import AlreadyImported, NewRecord
from service.store.records.imported import Imported

NOT_LINKED = "The record that it links to is missing in the source, or was refused."


class ItemImporter:
    """Imports items of any kind. `report` is called with a line for each reason to refuse one."""

    def __init__(
        self, store: Store, caller: Caller, report: Callable[[str], None], *, dry_run: bool = False
    ) -> None:
        self._store, self._caller, self._report, self.is_dry = store, caller, report, dry_run
        self.outcome = Outcome()
        self._deferred: list[Item] = []
        """Items that link to records which have not been imported yet."""
        self.is_origin = False
        """Whether the source is an export of this database: records that exist are not imported again."""
        self._planned: set[bytes] = set()
        """In a dry run: the keys of records that would have been created."""

    async def store(self, batch: Sequence[Entry]) -> None:
        """Import a batch of one kind."""
        kind = batch[0].kind
        for refusal in batch:
            if isinstance(refusal, Refusal):
                self._refuse(kind, refusal.where, [refusal.reason])
        items = [item for item in batch if isinstance(item, Item)]
        await self._store_items(kind, items)
        await self._cancel(kind, [series for series in batch if isinstance(series, Series)])

    async def _cancel(self, kind: Kind, many: Sequence[Series]) -> None:
        """Cancel the records of series that the source has no longer."""
        ranges = [one for series in many for one in series.ranges]
        found = await self._store.imported.find_between(kind, ranges)
        present = {key for series in many for key in series.present}
        gone = [key for key, one in found.items() if key not in present and one.status != "trash"]
        await self._store_items(kind, [Item(kind, key, "", None) for key in gone])

    async def retry_deferred(self, *, refuse_rest: bool = False) -> None:
        """Import the items whose links can be resolved by now; the others may be refused."""
        before = None
        while self._deferred and len(self._deferred) != before:
            before, waiting, self._deferred = len(self._deferred), self._deferred, []
            for batch in slices(waiting):
                await self._store_items(batch[0].kind, batch)
        if refuse_rest:
            for item in self._deferred:
                ids = await linked_ids(self._store.imported, item.kind, [item], self._planned)
                self._refuse_item(item, InvalidFields(dict.fromkeys(ids.missing(item), NOT_LINKED)))
            self._deferred = []

    async def _store_items(self, kind: Kind, items: Sequence[Item]) -> None:
        if not items:
            return
        known = await self._store.imported.find(kind, [item.key for item in items])
        ids = await linked_ids(self._store.imported, kind, items, self._planned)
        new: list[tuple[Item, Document]] = []
        for item in items:
            try:
                found = known.get(item.key) or await self._adopted(item, ids)
                if is_settled(item, found):
                    self.outcome.add(kind, "same")
                    continue
                data = self._load(item, ids)
                if found:
                    self.outcome.add(kind, "changed" if await self._update(item, found, data) else "same")
                else:
                    new.append((item, data))
            except MissingLink:
                self._deferred.append(item)
            except Problem as problem:
                self._refuse_item(item, problem)
        if new:
            await self._create(kind, new)

    async def _adopted(self, item: Item, ids: LinkedIds) -> Imported | None:
        """A record that was not imported but is the same: the one that was exported from this database, or
        a category or tag with the same slug and parent."""
        if self.is_dry or item.values is None:
            return None
        if self.is_origin:
            return await self._store.imported.adopt(item.kind, item.key, {"_id": item.id})
        if item.kind.is_post or not item.values.get("slug"):
            return None
        query = {"slug": item.values["slug"], "parent": ids.parent(item)}
        return await self._store.imported.adopt(item.kind, item.key, query)

    def _load(self, item: Item, ids: LinkedIds) -> Document:
        """The validated data of an item; raises InvalidFields."""
        if item.values is None:
            return {"status": "trash", "import_hash": item.hash}
        data, problems = load_valid(item.kind.slug_update_schema, ids.fill(item), self._store.site)
        problems.refuse()
        if self.is_dry:  # finds what validation of single fields does not, such as an end before the start
            item.kind.normalize(data, None, self._store.site)
        password = {"password": item.password_hash} if item.password_hash else {}
        return {**data, **password, "import_hash": item.imported_hash or item.hash}

    async def _update(self, item: Item, found: Imported, data: Document) -> bool:
        """Update a record; return whether that has changed it."""
        if self.is_dry:
            return True
        if self.is_origin and found.hash is None:
            del data["import_hash"]  # it was not imported into this database
        if found.status == "trash" and item.values is not None:
            data = {"status": "publish", **data}  # it was cancelled in the source, and is no longer
        try:
            record = await self._store.update(item.kind, found.id, data, self._caller)
        except DuplicateTermSlug:
            data.pop("slug")
            record = await self._store.update(item.kind, found.id, data, self._caller)
        return bool(record["version"] != found.version)

    async def _create(self, kind: Kind, new: Sequence[tuple[Item, Document]]) -> None:
        if self.is_dry:
            self._planned |= {item.key for item, _ in new}
            for _ in new:
                self.outcome.add(kind, "new")
            return
        taken = await self._taken_ids(kind, [item.id for item, _ in new if item.id])
        records: dict[NewRecord, Item] = {}
        for item, data in new:
            id = None if item.id in taken else item.id
            records[NewRecord(data, self._caller, import_key=item.key, id=id)] = item
        with pymongo.timeout(BATCH_SECONDS):
            created = await self._store.creator.create_many(kind, list(records))
        for record, result in created.items():
            if isinstance(result, AlreadyImported):
                self.outcome.add(kind, "same")
            elif isinstance(result, Exception):
                self._refuse_item(records[record], result if isinstance(result, Problem) else Unavailable())
            else:
                self.outcome.add(kind, "new")

    async def _taken_ids(self, kind: Kind, ids: list[int]) -> set[int]:
        """The ids that other records have. The others will not be assigned to new records."""
        if not ids:
            return set()
        await self._store.ids.raise_to(kind.id_space, max(ids))
        return await self._store.imported.taken_ids(kind.id_space, ids)

    def _refuse_item(self, item: Item, problem: Problem) -> None:
        self._refuse(item.kind, item.where, reasons_of(problem))

    def _refuse(self, kind: Kind, where: str, reasons: Sequence[str]) -> None:
        self.outcome.add(kind, "refused")
        for reason in reasons:
            self._report(f"{where}: {reason}")
