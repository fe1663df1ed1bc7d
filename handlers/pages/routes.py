"""The routes of the web pages."""

from __future__ import annotations

from aiohttp import web

from handlers.pages.calendar.views import CalendarPages
from handlers.pages.records import RecordPages
from handlers.pages.rendering import send_asset
from handlers.pages.sitemap import SitemapPages
from handlers.records import Caches
from handlers.store_protocol import Store
from schemas import EVENT, KINDS
from schemas.site import Site


def routes(store: Store, site: Site, caches: Caches) -> list[web.RouteDef]:
    calendar = CalendarPages(store, site, caches)
    sitemap = SitemapPages(store, calendar)
    views = "{view:month|week|day|list|past|map}"
    shown = {"": calendar.home, f"/{views}": calendar.view, f"/{views}/{{day}}": calendar.view}
    return [
        web.get("/", calendar.home),
        *(web.get(f"/events{path}{end}", handler) for path, handler in shown.items() for end in ("", "/")),
        web.get(f"/embed/{views}", calendar.embed),
        web.get("/assets/{name}", send_asset),
        web.get("/robots.txt", sitemap.robots),
        web.get("/sitemap.xml", sitemap.index),
        web.get(r"/sitemap-{name:[a-z]+}-{number:\d{1,6}}.xml", sitemap.part),
        *(route for kind in KINDS for route in record_routes(RecordPages(kind, store, calendar))),
    ]


def record_routes(pages: RecordPages) -> list[web.RouteDef]:
    bare = f"/{pages.kind.page}/{{slug:[a-zA-Z0-9_-]+}}"
    routes = []
    for path in (bare, bare + "/"):
        routes.append(web.get(path, pages.show))
        if pages.kind is EVENT:  # only events can have a password
            routes.append(web.post(path, pages.unlock))
    return routes
