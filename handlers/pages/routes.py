"""The routes of the web pages."""

from __future__ import annotations

from aiohttp import web

from handlers.pages.calendar import CalendarPages
from handlers.pages.records import RecordPages
from handlers.pages.rendering import send_asset
from handlers.records import Caches
from handlers.store_protocol import Store
from schemas import EVENT, KINDS
from schemas.site import Site


def routes(store: Store, site: Site, caches: Caches) -> list[web.RouteDef]:
    calendar = CalendarPages(store, site, caches)
    views = "{view:month|week|day|list|past|map}"
    return [
        web.get("/", calendar.home),
        web.get(f"/events/{views}/", calendar.view),
        web.get(f"/events/{views}/{{day}}/", calendar.view),
        web.get(f"/embed/{views}", calendar.embed),
        web.get("/assets/{name}", send_asset),
        *(route for kind in KINDS for route in record_routes(RecordPages(kind, store, calendar))),
    ]


def record_routes(pages: RecordPages) -> list[web.RouteDef]:
    path = f"/{pages.kind.page}/{{slug:[a-zA-Z0-9_-]+}}"
    shown = [web.get(path, pages.show), web.get(path + "/", pages.show)]
    # Only events can have a password.
    return [*shown, web.post(path + "/", pages.unlock)] if pages.kind is EVENT else shown
