"""The filters of a page: the categories to choose from, and what the address asks for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from handlers.pages.context import PageContext
from handlers.store_protocol import Store
from schemas.event_representation import LINKED
from schemas.kind import Document
from schemas.language import Text

NAMES = {
    "search": Text("Search"),
    "categories": Text("Category"),
    "tags": Text("Tag"),
    "venue": Text("Venue"),
    "organizer": Text("Organizer"),
}


class Chip(NamedTuple):
    """A filter that is in effect, and the link to the same page without it."""

    label: str
    link: str


async def chips(page: PageContext, store: Store) -> list[Chip]:
    """The filters in effect, except those that the form above the calendar shows."""
    found = []
    for name, value in page.filters:
        if name not in ("search", "categories"):
            label = page.text(NAMES[name]) if name in NAMES else name
            without = page.link(page.path, **{name: None})
            found.append(Chip(f"{label}: {await _shown(name, value, store)}", without))
    return found


async def _shown(name: str, value: str, store: Store) -> str:
    """The value of a filter; for an ID, the name of the record. Who may not see it gets no page with it."""
    kind = LINKED.get(name)
    if kind is None or not kind.is_post or not value.isdigit():
        return value
    records = await store.fetch(kind, [int(value)])
    return str(records[0][kind.name_field]) if records else value


def in_tree_order(categories: Sequence[Document]) -> Iterator[tuple[int, Document]]:
    """(depth, category), each below its parent; those whose parent is not among them are at the top."""
    ids = {category["id"] for category in categories}
    below = defaultdict(list)
    for category in categories:
        below[category["parent"] if category["parent"] in ids else 0].append(category)

    def branch(parent: int, depth: int) -> Iterator[tuple[int, Document]]:
        for category in below[parent]:
            yield depth, category
            yield from branch(category["id"], depth + 1)

    return branch(0, 0)
