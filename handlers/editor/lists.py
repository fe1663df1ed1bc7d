"""Lists of all records of a kind that the caller may see, and of those that wait for review."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from aiohttp import web

from handlers.editor.forms import choices, stored_digests
from handlers.editor.forms.choices import STATUSES, Choices, has_tree
from handlers.editor.frame import EDITABLE, EVERY_EVENT, Frame, edit_link, kind_of, may_create, see_other
from handlers.pages.calendar.event_times import ShownEvent
from handlers.pages.calendar.views import page_number
from handlers.pages.context import PageContext
from handlers.pages.filters import in_tree_order
from schemas.caller import Caller
from schemas.errors import Forbidden
from schemas.kind import Document, Kind, load, reader_of
from schemas.language import Text

PER_PAGE = 25
ORDERS = {"title": Text("Name"), "start_date": Text("Date"), "modified": Text("Changed")}
"""What a list can be sorted by, if its kind can -> name of the column."""


@dataclass(frozen=True)
class Row:
    """A record in a list."""

    record: Document
    name: str
    may_write: bool
    event: ShownEvent | None = None
    depth: int = 0

    @property
    def status(self) -> str:
        return str(self.record.get("status", ""))

    @property
    def modified(self) -> datetime:
        return datetime.fromisoformat(self.record["modified"])


class ListPages:
    """The handlers of the lists."""

    def __init__(self, frame: Frame) -> None:
        self._frame, self._choices = frame, Choices(frame.finder)

    async def home(self, request: web.Request) -> web.StreamResponse:
        return see_other(request, edit_link(self._frame.page(request), "/edit/events"))

    async def index(self, request: web.Request) -> web.StreamResponse:
        kind, page = kind_of(request), self._frame.page(request)
        number, search = page_number(page), page.value("search")[:200]
        rows, total = await self._rows(kind, page, number, search)
        is_tree = has_tree(kind) and not search and total <= choices.MAX_OPTIONS
        if is_tree:
            rows = await self._tree(kind, page)
        trashed = await self._trashed(kind, page)
        return await self._frame.respond(
            request,
            "list.html",
            kind=kind,
            rows=rows,
            total=total,
            number=number,
            pages=1 if is_tree else max(1, math.ceil(total / PER_PAGE)),
            search=search,
            chosen=self._status(page),
            statuses=STATUSES,
            orders={name: text for name, text in ORDERS.items() if name in orders_of(kind)},
            trashed=trashed,
            was=stored_digests(kind, trashed, page) if trashed else "",
        )

    async def review(self, request: web.Request) -> web.StreamResponse:
        page = self._frame.page(request)
        if not page.caller.writes_all:
            raise Forbidden
        found = [(kind, await self._rows(kind, page, 1, "", "pending")) for kind in EDITABLE]
        waiting = [(kind, rows, total) for kind, (rows, total) in found if rows]
        return await self._frame.respond(request, "review.html", waiting=waiting, statuses=STATUSES)

    async def _rows(
        self, kind: Kind, page: PageContext, number: int, search: str, status: str = ""
    ) -> tuple[list[Row], int]:
        sent: dict[str, Any] = {"page": number, "search": search, "hide_empty": "0"}
        if kind.is_post:
            sent |= {"status": status or self._status(page), **order_of(kind, page)}
        query = load(kind.query_schema, {name: one for name, one in sent.items() if one}, page.site)
        found = query | EVERY_EVENT | {"per_page": PER_PAGE}
        records, total = await self._frame.finder.records(kind, page, found)
        return [row(kind, one, page) for one in records], total

    async def _tree(self, kind: Kind, page: PageContext) -> list[Row]:
        records = await self._choices.records(kind, page)
        return [row(kind, one, page, depth) for depth, one in in_tree_order(records)]

    def _status(self, page: PageContext) -> str:
        return status if (status := page.value("status")) in STATUSES else ""

    async def _trashed(self, kind: Kind, page: PageContext) -> Document | None:
        """The record that was just moved to the trash, if that can be undone."""
        if page.value("notice") != "trashed" or not (id := page.value("id")).isdecimal() or len(id) > 18:
            return None
        found = await self._frame.store.find_many(kind, [int(id)])
        return found[0] if found and is_restorable(found[0], kind, page.caller) else None


def is_restorable(record: Document, kind: Kind, caller: Caller) -> bool:
    return record.get("status") == "trash" and may_write(caller, kind, record)


def may_write(caller: Caller, kind: Kind, record: Document) -> bool:
    return may_create(caller, kind) and caller.may_write(record)


def row(kind: Kind, record: Document, page: PageContext, depth: int = 0) -> Row:
    event = ShownEvent(record, page.site.now()) if "start_date" in record else None
    return Row(record, record[kind.name_field], may_write(page.caller, kind, record), event, depth)


def orders_of(kind: Kind) -> list[str]:
    if not kind.is_post:
        return []
    field: Any = reader_of(kind.query_schema).fields["orderby"]
    return list(field.words)


def order_of(kind: Kind, page: PageContext) -> dict[str, str]:
    """The order that the address asks for; by default what was changed last is first."""
    if (by := page.value("orderby")) not in ORDERS or by not in orders_of(kind):
        return {"orderby": "modified", "order": "desc"}
    return {"orderby": by, "order": "desc" if page.value("order") == "desc" else "asc"}
