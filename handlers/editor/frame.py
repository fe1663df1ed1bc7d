"""What all pages of the editor share: who may see them, their navigation, notices and redirects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

from aiohttp import web

from handlers.pages.calendar.events import EventFinder
from handlers.pages.context import PageContext, page_context
from handlers.pages.rendering import html_response
from handlers.records import Caches
from handlers.responses.prepared import PreparedResponse
from handlers.store_protocol import Store
from schemas import BY_PLURAL, KINDS
from schemas.caller import EVERYBODY, Caller, Role
from schemas.errors import NOUNS, Problems
from schemas.kind import Kind, load
from schemas.language import Text
from schemas.site import Site
from schemas.values.zones import zone_names

NOTICES = {
    "created": Text("Created."),
    "saved": Text("Saved."),
    "unchanged": Text("Nothing was changed."),
    "trashed": Text("Moved to the trash."),
    "restored": Text("Restored."),
    "deleted": Text("Deleted."),
    "changed": Text("Somebody else has changed this meanwhile: please look at it again."),
    "undone": Text("Undone."),
    "undo-expired": Text("This can no longer be undone."),
    "undo-changed": Text("This cannot be undone: the record was changed again meanwhile."),
}
"""Code in the address -> what the page says."""
EDITABLE = tuple(kind for kind in KINDS if kind.is_post)
"""Kinds whose records are reviewed."""


class Frame:
    """Makes responses with the frame of the editor."""

    def __init__(self, store: Store, site: Site, caches: Caches) -> None:
        self.store, self.site, self.finder = store, site, EventFinder(store, site, caches)

    def page(self, request: web.Request) -> PageContext:
        return page_context(request, self.site)

    async def respond(
        self, request: web.Request, template: str, status: int = 200, **values: Any
    ) -> web.StreamResponse:
        page = self.page(request)
        shared: dict[str, Any] = {
            "kinds": KINDS,
            "heading": heading,
            "noun": noun,
            "link": lambda path, /, **query: edit_link(page, path, **query),
            "pending": await self.pending(page.caller),
            "may_create": may_create,
            "zones": zone_names,
            "is_open": page.caller == EVERYBODY,
            "notice": NOTICES.get(page.value("notice")),
            "sent_to": edit_link(page, page.path, **dict(page.pairs)),
        }
        shown = replace(page, path=readable_path(page.path))
        return html_response(f"edit/{template}", shown, status, **shared | values).respond_to(request)

    async def pending(self, caller: Caller) -> int:
        """The number of records that wait for an editor."""
        if not caller.writes_all:
            return 0
        return sum([(await self._waiting(kind, caller)) for kind in EDITABLE])

    async def _waiting(self, kind: Kind, caller: Caller) -> int:
        query = load(kind.query_schema, {"status": "pending", "per_page": "1"}, self.site)
        return (await self.store.page(kind, query | EVERY_EVENT, caller, Problems())).total


EVERY_EVENT = {"any_date": True, "with_hidden": True}
"""Parameters of the store for lists of the editor: events of any date, and those that lists do not show."""


def readable_path(path: str) -> str:
    """The path that links to other languages have: actions that can only be sent have the form's."""
    return path.removesuffix("/undo").removesuffix("/restore")


def heading(kind: Kind) -> str:
    return kind.label or kind.plural.capitalize()


def noun(kind: Kind) -> str:
    return NOUNS.get(kind.name, kind.name.capitalize())


def kind_of(request: web.Request) -> Kind:
    return BY_PLURAL[request.match_info["plural"]]


def may_create(caller: Caller, kind: Kind) -> bool:
    return caller.writes and (kind.is_post or caller.role is not Role.CONTRIBUTOR)


def edit_link(page: PageContext, path: str, /, **query: object) -> str:
    """A link within the editor, in the language that the address asks for."""
    kept = {"lang": page.value("lang"), **query}
    pairs = [(name, str(value)) for name, value in kept.items() if value not in ("", None)]
    return page.plain_link(path) + (f"?{urlencode(pairs, quote_via=quote)}" if pairs else "")


def see_other(request: web.Request, to: str) -> web.StreamResponse:
    """Redirects so that a reload does not send a form again."""
    headers = {"Location": to, "Cache-Control": "private, no-cache"}
    return PreparedResponse(b"", headers, 303).respond_to(request)
