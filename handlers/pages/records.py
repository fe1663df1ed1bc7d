"""The pages of records: one for each kind, made from its data; events have a layout of their own."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime
from typing import Any

from aiohttp import web
from markupsafe import Markup

from handlers.pages.calendar.event_times import ShownEvent
from handlers.pages.calendar.views import CalendarPages
from handlers.pages.category_links import category_links
from handlers.pages.context import PageContext, page_context
from handlers.pages.facts import facts_of, filter_of, map_of
from handlers.pages.meta import Meta, image_address
from handlers.pages.rendering import html_response
from handlers.records import path_ref
from handlers.requests import body_values
from handlers.responses.prepared import PreparedResponse
from handlers.store_protocol import Store
from schemas import EVENT, ORGANIZER, VENUE
from schemas.errors import NOUNS, NotAccessible, NotFound, PasswordNeeded, Trashed
from schemas.kind import Document, Kind
from schemas.kinds.event_representation import is_locked
from schemas.language import Text
from schemas.values.rich_text import excerpt, rich_text
from schemas.values.slugs import TRASHED_SUFFIX

MAX_CHARS_ON_LOOP = 10_000
"""Descriptions with more characters than this are formatted in a thread."""
UPCOMING = 10
"""Events that the page of a venue, organizer or term shows."""


class RecordPages:
    """The handlers of the pages of one kind."""

    def __init__(self, kind: Kind, store: Store, calendar: CalendarPages) -> None:
        self.kind, self.store, self.calendar = kind, store, calendar

    async def show(self, request: web.Request) -> web.StreamResponse:
        page = self._context(request)

        async def make() -> tuple[PreparedResponse, datetime]:
            record = await self._read(request, page)
            return await self._response(page, record)

        try:
            response = await self.calendar.pages.response(("record page", page.key), make)
        except PasswordNeeded:
            response = password_form(page)
        return response.respond_to(request)

    async def unlock(self, request: web.Request) -> web.StreamResponse:
        """The page of a protected event, for the password in a form. It is kept nowhere."""
        page = self._context(request)
        sent = (await body_values(request)).get("password")
        record = await self._read(request, page, sent if isinstance(sent, str) else None)
        response, _ = await self._response(page, record)
        return response.respond_to(request)

    def _context(self, request: web.Request) -> PageContext:
        """The context, with the path that the record's own address has. Only the language matters beside it:
        whatever else is in the query, the page is the same."""
        page = page_context(request, self.calendar.site)
        path = f"/{self.kind.page}/{path_ref(request, self.kind)}/"
        return replace(page, path=path, pairs=[pair for pair in page.pairs if pair[0] == "lang"])

    async def _read(self, request: web.Request, page: PageContext, password: str | None = None) -> Document:
        """The record in the path. What the caller may not see does not exist, nor does it in the trash."""
        slug = path_ref(request, self.kind)
        try:
            try:
                return await self.store.read(self.kind, slug, page.caller, password)
            except NotFound:
                # In the trash a record has another slug; whoever has its address is told that it is gone.
                return await self.store.read(self.kind, f"{slug}{TRASHED_SUFFIX}", page.caller, password)
        except NotAccessible:
            raise NotFound(kind=self.kind.name) from None
        except Trashed as gone:
            raise gone if gone.was_seen else NotFound(kind=self.kind.name) from None

    async def _response(self, page: PageContext, record: Document) -> tuple[PreparedResponse, datetime]:
        """The page, and when it expires if nothing changes."""
        kind, shown = self.kind, self.kind.represent(self.kind, record, page.records)
        is_private = is_locked(record) or shown.get("status", "publish") != "publish"
        values: Document = {"kind": kind, "shown": shown, "name": shown[kind.name_field]}
        values |= {"description": await formatted(shown["description"])}
        values |= {"facts": facts_of, "map_of": map_of}
        values |= await self._own_values(page, shown)
        is_listed = not is_private and not shown.get("hide_from_listings") and not is_empty(values)
        values["meta"] = self._meta(page, record, shown, is_indexed=is_listed)
        template = "event.html" if kind is EVENT else "record.html"
        response = html_response(template, page, is_private=is_private, is_locked=is_locked(record), **values)
        return response, self.calendar.expires_at([values["event"]] if kind is EVENT else values["events"])

    async def _own_values(self, page: PageContext, shown: Document) -> Document:
        """An event with its times; for other kinds their next events, and links that are filtered by them."""
        if self.kind is EVENT:
            kinds = {"venue_kind": VENUE, "organizer_kind": ORGANIZER}
            return {"event": ShownEvent(shown, self.calendar.site.now()), **kinds}
        finder, noun = self.calendar.finder, NOUNS.get(self.kind.name, self.kind.name.capitalize())
        values = {"noun": noun, **await category_links(finder, page, self.kind, shown)}
        if not (filters := filter_of(self.kind, shown)):
            return values | {"filtered": None, "events": [], "total": 0}
        filtered = replace(page, pairs=filters + page.pairs)
        found = await finder.from_day(filtered, self.calendar.today(), 1, UPCOMING)
        return values | {"filtered": filtered, "events": found.events, "total": found.total}

    def _meta(self, page: PageContext, record: Document, shown: Any, *, is_indexed: bool) -> Meta:
        return Meta(
            title=shown[self.kind.name_field],
            description=excerpt(shown.get("excerpt") or shown["description"]),
            image=image_address(shown.get("image")),
            type="article" if self.kind is EVENT else "website",
            json_ld=self.kind.json_ld(self.kind, record, page.records) if self.kind.json_ld else None,
            is_indexed=is_indexed,
        )


async def formatted(description: str) -> Markup:
    """A description as HTML. A long one takes some tenths of a second."""
    if len(description) > MAX_CHARS_ON_LOOP:
        return await asyncio.to_thread(rich_text, description)
    return rich_text(description)


def is_empty(values: Document) -> bool:
    """Whether a page says nothing: no description, and no events."""
    return "event" not in values and not values["description"] and not values["events"]


def password_form(page: PageContext, status: int = 200, *, was_wrong: bool = False) -> PreparedResponse:
    """Asks for the password of a protected event; says nothing about the event."""
    meta = Meta(page.text(Text("Protected event")), is_indexed=False)
    return html_response("password.html", page, status, is_private=True, was_wrong=was_wrong, meta=meta)
