"""The routes of the web pages."""

from __future__ import annotations

from aiohttp import web

from handlers.pages.calendar import CalendarPages
from handlers.pages.rendering import send_asset
from handlers.records import Caches
from handlers.store_protocol import Store
from schemas.site import Site


def routes(store: Store, site: Site, caches: Caches) -> list[web.RouteDef]:
    calendar = CalendarPages(store, site, caches)
    views = "{view:month|week|day|list|past}"
    return [
        web.get("/", calendar.home),
        web.get(f"/events/{views}/", calendar.view),
        web.get(f"/events/{views}/{{day}}/", calendar.view),
        web.get(f"/embed/{views}", calendar.embed),
        web.get("/assets/{name}", send_asset),
    ]
