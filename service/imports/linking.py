"""Resolves the links between the records of a source."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from schemas import BY_NAME
from schemas.kind import Document, Kind
from schemas.kinds.parents import parent_field
from service.imports.imported import ImportedRecords
from service.imports.item import Item


class MissingLink(Exception):
    """A linked record has not been imported yet."""


class LinkedIds:
    """The ids of records that items link to. In a dry run those that would have been created have none."""

    def __init__(self, found: dict[bytes, int], planned: Collection[bytes]) -> None:
        self._found, self._planned = found, planned

    def __getitem__(self, key: bytes) -> int:
        if key not in self:
            raise MissingLink
        return self._found.get(key, 0)

    def __contains__(self, key: bytes) -> bool:
        return key in self._found or key in self._planned

    def parent(self, item: Item) -> int:
        """The id of the parent of a category or event; 0 for none."""
        return next((self[key] for key in item.links.get(parent_field(item.kind), ())), 0)

    def fill(self, item: Item) -> Document:
        """The values of an item with the ids of the records that it links to; raises MissingLink."""
        values = dict(item.values or {})
        for field, keys in item.links.items():
            is_parent = field == parent_field(item.kind)
            values[field] = self.parent(item) if is_parent else [self[key] for key in keys]
        return values

    def missing(self, item: Item) -> list[str]:
        """The fields whose links cannot be resolved."""
        return [field for field, keys in item.links.items() if not all(key in self for key in keys)]


async def linked_ids(
    imported: ImportedRecords, kind: Kind, items: Sequence[Item], planned: Collection[bytes]
) -> LinkedIds:
    """Find all records that the items link to and that have been imported."""
    ids: dict[bytes, int] = {}
    for field in {name for item in items for name in item.links}:
        target = BY_NAME[kind.links.get(field, kind.name)]
        keys = {key for item in items for key in item.links.get(field, ())}
        ids |= {key: one.id for key, one in (await imported.find(target, keys)).items()}
    return LinkedIds(ids, planned)
