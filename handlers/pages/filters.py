"""The filters of a page: the categories to choose from, and what the address asks for."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from handlers.pages.context import PageContext
from handlers.pages.facts import filter_of
from handlers.store_protocol import Store
from schemas.kind import Document
from schemas.kinds.category import CATEGORY
from schemas.kinds.event_representation import LINKED
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
INDENT = "\u2003"
ID = re.compile(r"[0-9]{1,18}")


class Chip(NamedTuple):
    """A filter that is in effect, and the link to the same page without it."""

    label: str
    link: str


class Option(NamedTuple):
    """A category in the form above the calendar."""

    value: str
    label: str
    is_chosen: bool


async def chips(page: PageContext, store: Store) -> list[Chip]:
    """The filters in effect, except those that the form above the calendar shows. A place has several
    parameters, which only make sense together."""
    found = []
    for sent, value in page.filters:
        name = sent.partition("[")[0]
        if name in NAMES and name not in IN_FORM:
            label = f"{page.text(NAMES[name])}: {await _shown(name, value, page, store)}"
            found.append(Chip(label, page.link_without([(sent, value)])))
    unnamed = [pair for pair in page.filters if pair[0].partition("[")[0] not in NAMES]
    places = [pair for pair in unnamed if pair[0].startswith("geoloc")]
    others = [pair for pair in unnamed if pair not in places]
    for text, removed in ((Text("Nearby"), places), (Text("Other filters"), others)):
        if removed:
            found.append(Chip(page.text(text), page.link_without(removed)))
    return found


async def _shown(name: str, value: str, page: PageContext, store: Store) -> str:
    """The value of a filter; for an ID, the name of the record if the caller may see it."""
    kind = LINKED.get(name)
    if kind is None or not kind.is_post or not ID.fullmatch(value):
        return value
    records = [record for record in await store.find_many(kind, [int(value)]) if record["status"] != "trash"]
    return str(records[0][kind.name_field]) if records and page.caller.sees(records[0]) else value


def category_options(page: PageContext, categories: Sequence[Document]) -> list[Option]:
    """The categories to choose from. What the address asks for is always one of the options, as it was sent,
    so that the form shows and keeps it, and another choice replaces it."""
    asked = ",".join(value.strip() for value in page.values("categories"))
    options = []
    for depth, category in in_tree_order(categories):
        ((_, value),) = filter_of(CATEGORY, category)
        is_chosen = asked in (value, str(category["id"]))
        options.append(Option(value, INDENT * depth + category["name"], is_chosen))
    if not asked or any(option.is_chosen for option in options):
        return options
    return [Option(asked, _category_names(asked, categories), is_chosen=True), *options]


def _category_names(asked: str, categories: Sequence[Document]) -> str:
    """The names of categories given by slug or ID; those that are not offered stay as they were sent."""
    names = {str(category[key]): category["name"] for key in ("slug", "id") for category in categories}
    return ", ".join(names.get(text.strip(), text.strip()) for text in asked.split(","))


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
