"""What the inputs of a form offer: venues and organizers, the tree of categories, tags, statuses, zones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handlers.editor.forms import Form
from handlers.editor.forms.fields import FormField, Option
from handlers.pages.calendar.events import EventFinder
from handlers.pages.context import PageContext
from handlers.pages.filters import in_tree_order
from schemas.caller import Caller
from schemas.kind import Document, Kind, load, reader_of
from schemas.language import Text
from schemas.links import LinkList

MAX_OPTIONS = 1000
"""Records that an input offers."""
STATUSES = {
    "publish": Text("Published"),
    "draft": Text("Draft"),
    "pending": Text("Waiting for review"),
    "private": Text("Private"),
    "future": Text("Scheduled"),
    "trash": Text("In the trash"),
}
"""Status -> its name."""


class Choices:
    """Fills in what the inputs of a form offer."""

    def __init__(self, finder: EventFinder) -> None:
        self._finder = finder

    async def fill(self, form: Form, page: PageContext, shown: Mapping[str, Any], id: int = 0) -> None:
        for one in form.fields:
            if isinstance(one.schema_field, LinkList):
                target = one.schema_field.kind
                options = await self.of_kind(target, page)
                one.is_cut = len(options) >= MAX_OPTIONS
                one.linked = linked_options(shown.get(one.name), target)
                one.options = with_linked(options, one.linked)
            elif one.widget.macro == "parent":
                options = without_branch(await self.of_kind(form.kind, page), str(id))
                parent = await self.term(form.kind, page, shown.get(one.name))
                one.options = with_linked(options, linked_options(parent, form.kind))
            elif one.widget.macro == "status":
                one.options = statuses(page, one)

    async def of_kind(self, kind: Kind, page: PageContext) -> list[Option]:
        """The records of a kind by name; categories as a tree."""
        records = await self.records(kind, page)
        if has_tree(kind):
            return tree(records)
        return [Option(str(one["id"]), one[kind.name_field]) for one in records]

    async def term(self, kind: Kind, page: PageContext, id: int | None) -> list[Document]:
        """The term with an ID, if there is one."""
        if not id:
            return []
        query = load(kind.query_schema, {"include": str(id), "hide_empty": "0"}, page.site)
        return (await self._finder.records(kind, page, query))[0]

    async def records(self, kind: Kind, page: PageContext) -> list[Document]:
        sent = {"orderby": "title"} if kind.is_post else {"orderby": "name", "hide_empty": "0"}
        query = load(kind.query_schema, sent, page.site) | {"per_page": MAX_OPTIONS}
        return (await self._finder.records(kind, page, query))[0]


def has_tree(kind: Kind) -> bool:
    return "parent" in reader_of(kind.body_schema).fields


def linked_options(linked: Any, kind: Kind) -> list[Option]:
    return [Option(str(one["id"]), one[kind.name_field]) for one in linked_records(linked)]


def linked_records(linked: Any) -> list[Document]:
    """The linked records; a single one need not be in an array."""
    return [one for one in (linked if isinstance(linked, list) else [linked]) if one]


def with_linked(options: list[Option], linked: list[Option]) -> list[Option]:
    """The options, and the linked records, which may be further down in a long list."""
    known = {option.id for option in options}
    return [*(option for option in linked if option.id not in known), *options]


def tree(records: list[Document]) -> list[Option]:
    """Categories in the order of a tree, each below its parent."""
    return [Option(str(one["id"]), one["name"], depth) for depth, one in in_tree_order(records)]


def without_branch(options: list[Option], id: str) -> list[Option]:
    """The options without a category and those below it: none of them can be its parent."""
    at = next((at for at, option in enumerate(options) if option.id == id), None)
    if at is None:
        return options
    depth = options[at].depth
    end = next((n for n in range(at + 1, len(options)) if options[n].depth <= depth), len(options))
    return options[:at] + options[end:]


def statuses(page: PageContext, field: FormField) -> list[Option]:
    """The statuses that the role may set, and the present one."""
    names = allowed_statuses(page.caller)
    if field.raw and field.raw not in names:
        names = (*names, str(field.raw))
    return [Option(name, page.text(STATUSES.get(name, name))) for name in names]


def allowed_statuses(caller: Caller) -> tuple[str, ...]:
    return ("publish", "draft", "pending", "private") if caller.publishes else ("pending", "draft", "private")
