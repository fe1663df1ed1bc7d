"""Decides whether there is anything to do for a record of a source."""

from __future__ import annotations

from schemas import EVENT
from service.imports.item import Item
from service.store.records.imported import Imported

CANCELLED_HASH = Item(EVENT, b"", "", None).hash


def is_settled(item: Item, found: Imported | None) -> bool:
    """Whether there is nothing to do: nothing has changed in the source, it was cancelled and is not here, or
    somebody has moved it to the trash here."""
    if found is None:
        return item.values is None
    if found.hash == item.hash:
        return True
    return found.status == "trash" and (item.values is None or found.hash != CANCELLED_HASH)
