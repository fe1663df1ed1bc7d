"""Imports the records that a reader yields: new and changed ones are written, the others are left alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from schemas import EVENT
from schemas.errors import InvalidFields, Problem
from schemas.kind import Document, Kind, load_valid
from service.imports.batches import slices
from service.imports.imported import Imported, ImportedRecords
from service.imports.item import Entry, Item, Refusal, Series
from service.imports.linking import LinkedIds, MissingLink, linked_ids
from service.imports.outcome import Outcome
from service.imports.writing import New, Writer
from service.store import Store

CANCELLED_HASH = Item(EVENT, b"", "", None).hash
NOT_LINKED = "The record that it links to is missing in the source, or was refused."


class ItemImporter:
    """Imports items of any kind."""

    def __init__(self, store: Store, writer: Writer, report: Callable[[str], None]) -> None:
        self._imported, self._site = ImportedRecords(store.database), store.site
        self._writer, self.outcome = writer, Outcome(report)
        self._deferred: list[Item] = []
        """Items that link to records which have not been imported yet."""

    async def store(self, batch: Sequence[Entry]) -> None:
        """Import a batch of one kind."""
        kind = batch[0].kind
        for refusal in batch:
            if isinstance(refusal, Refusal):
                self.outcome.refuse(kind, refusal.where, [refusal.reason])
        await self._store_items(kind, [item for item in batch if isinstance(item, Item)])
        await self._cancel(kind, [series for series in batch if isinstance(series, Series)])

    async def retry_deferred(self, *, refuse_rest: bool = False) -> None:
        """Import the items whose links can be resolved by now; the others may be refused."""
        before = None
        while self._deferred and len(self._deferred) != before:
            before, waiting, self._deferred = len(self._deferred), self._deferred, []
            for batch in slices(waiting):
                await self._store_items(batch[0].kind, batch)
        if refuse_rest:
            for item in self._deferred:
                ids = await self._linked_ids(item.kind, [item])
                problem = InvalidFields(dict.fromkeys(ids.missing(item), NOT_LINKED))
                self.outcome.add(item.kind, item.where, problem)
            self._deferred = []

    async def _cancel(self, kind: Kind, many: Sequence[Series]) -> None:
        """Cancel the records of series that the source has no longer."""
        found = await self._imported.find_between(kind, [one for series in many for one in series.ranges])
        present = {key for series in many for key in series.present}
        gone = [key for key, one in found.items() if key not in present and one.status != "trash"]
        await self._store_items(kind, [Item(kind, key, "", None) for key in gone])

    async def _store_items(self, kind: Kind, items: Sequence[Item]) -> None:
        if not items:
            return
        known = await self._imported.find(kind, [item.key for item in items])
        ids = await self._linked_ids(kind, items)
        new: list[New] = []
        for item in items:
            try:
                found = known.get(item.key) or await self._writer.adopt(item, ids)
                if is_settled(item, found):
                    self.outcome.add(kind, item.where, "same")
                elif found:
                    await self._update(item, found, ids)
                else:
                    new.append((item, self._load(item, ids)))
            except MissingLink:
                self._deferred.append(item)
            except Problem as problem:
                self.outcome.add(kind, item.where, problem)
        if new:
            await self._create(kind, new)

    async def _update(self, item: Item, found: Imported, ids: LinkedIds) -> None:
        is_changed = await self._writer.update(item, found, self._load(item, ids))
        self.outcome.add(item.kind, item.where, "changed" if is_changed else "same")

    async def _create(self, kind: Kind, new: Sequence[New]) -> None:
        for item, result in await self._writer.create(kind, new):
            self.outcome.add(kind, item.where, result)

    async def _linked_ids(self, kind: Kind, items: Sequence[Item]) -> LinkedIds:
        return await linked_ids(self._imported, kind, items, self._writer.planned)

    def _load(self, item: Item, ids: LinkedIds) -> Document:
        """The validated data of an item; raises InvalidFields and MissingLink."""
        if item.values is None:
            return {"status": "trash", "import_hash": item.hash}
        data, problems = load_valid(item.kind.slug_update_schema, ids.fill(item), self._site)
        problems.refuse()
        # Only exports tell whether an event has a password.
        password = {"password": item.password_hash} if item.kind is EVENT and item.id else {}
        return {**data, **password, "import_hash": item.imported_hash or item.hash}


def is_settled(item: Item, found: Imported | None) -> bool:
    """Whether there is nothing to do: nothing has changed in the source, it was cancelled and is not here, or
    somebody has moved it to the trash here."""
    if found is None:
        return item.values is None
    if found.hash == item.hash:
        return True
    return found.status == "trash" and (item.values is None or found.hash != CANCELLED_HASH)
