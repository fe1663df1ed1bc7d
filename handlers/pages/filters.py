"""The filters of a page: the categories to choose from, and what the address asks for."""

from __future__ import annotations

import re
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
    "status": Text("Status"),
}
IN_FORM = ("search", "categories")
ID = re.compile(r"[0-9]{1,18}")


class Chip(NamedTuple):
    """A filter that is in effect, and the link to the same page without it."""

    label: str
    link: str


async def chips(page: PageContext, store: Store) -> list[Chip]:
    """The filters in effect, except those that the form above the calendar shows. A place has several
    parameters, which only make sense together."""
    found = []
    for sent, value in page.filters:
        name = sent.partition("[")[0]
        if name in NAMES and name not in IN_FORM:
            label = f"{page.text(NAMES[name])}: {await _shown(name, value, page, store)}"
            found.append(Chip(label, page.link(page.path, **{sent: None})))
    others = {sent: None for sent, _ in page.filters if sent.partition("[")[0] not in NAMES}
    places = {name: None for name in others if name.startswith("geoloc")}
    groups = ((Text("Nearby"), places), (Text("Other filters"), others.keys() - places.keys()))
    for text, names in groups:
        if names:
            found.append(Chip(page.text(text), page.link(page.path, **dict.fromkeys(names))))
    return found


async def _shown(name: str, value: str, page: PageContext, store: Store) -> str:
    """The value of a filter; for an ID, the name of the record if the caller may see it."""
    kind = LINKED.get(name)
    if kind is None or not kind.is_post or not ID.fullmatch(value):
        return value
    records = [record for record in await store.fetch(kind, [int(value)]) if record["status"] != "trash"]
    return str(records[0][kind.name_field]) if records and page.caller.sees(records[0]) else value


def in_tree_order(categories: Sequence[Document]) -> Iterator[tuple[int, Document]]:
    """(depth, category), each below its parent; those whose parent is not among them are at the top."""
    ids = {category["id"] for category in categories}
    below = defaultdict(list)
    for category in reversed(categories):
        below[category["parent"] if category["parent"] in ids else 0].append(category)
    waiting = [(0, category) for category in below[0]]
    while waiting:
        depth, category = waiting.pop()
        yield depth, category
        waiting += [(depth + 1, child) for child in below[category["id"]]]
