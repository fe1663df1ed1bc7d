"""Build the aiohttp application: routes, middlewares and caches."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import replace

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from config import Settings
from handlers import health, index
from handlers.changes import ChangesHandlers
from handlers.docs import api_description
from handlers.docs import page as docs_page
from handlers.editor import routes as editor
from handlers.pages import routes as pages
from handlers.pages.errors import ErrorPages
from handlers.records import Caches, caches
from handlers.responses.cache import FRAGMENT_BYTES, RESPONSE_BYTES, ByteCache
from handlers.routes import Operation, changes_operations, operations
from schemas import KINDS
from schemas.site import Site
from service.http.authentication import authenticate
from service.http.compression import compress_responses
from service.http.cross_site import CrossSite
from service.http.errors import handle_errors, problem_body
from service.http.in_flight import IN_FLIGHT, InFlight, is_monitoring
from service.http.rate_limits import limit_passwords, limit_rate
from service.http.request_ids import REQUEST_IDS, RequestIds
from service.metrics import exposition
from service.metrics.access import Scrapers
from service.metrics.sampling import SAMPLER
from service.metrics.sources import sampler_of
from service.page_routes import PageRoutes
from service.store import Store

CHANGES = web.AppKey("changes", ChangesHandlers)
"""Reads changes, for webhooks."""


def create_app(settings: Settings, store: Store) -> web.Application:
    """The application; it opens no files or connections of its own."""
    in_flight = InFlight(settings, lambda: store.feed.clock.has_lost_primary)
    cross_site, request_ids = CrossSite(settings), RequestIds()
    responses, fragments = ByteCache(RESPONSE_BYTES), ByteCache(FRAGMENT_BYTES)
    error_pages = ErrorPages(store.site, (store.site.namespace, *settings.aliases))
    outer = [
        handle_errors(request_ids, error_pages.show, finisher(cross_site, in_flight)),
        in_flight.enforce_limits,
        compress_responses(responses),
    ]
    middlewares = [*outer, *inner_middlewares(settings, store, cross_site)]
    app = web.Application(middlewares=middlewares, client_max_size=settings.max_body)
    app[IN_FLIGHT], app[REQUEST_IDS] = in_flight, request_ids
    shared = caches(store, responses, fragments)
    app[CHANGES] = ChangesHandlers(store, store.site, shared)
    for prefix in (store.site.namespace, *settings.aliases):
        mount(app, prefix, route_table(replace(store.site, namespace=prefix), store, shared))
    app.add_routes(pages.routes(store, store.site, shared))
    app.add_routes(editor.routes(store, store.site, shared, store.tokens.caller))
    app.add_routes(docs_page.routes(store.site))
    app.add_routes(health.routes(store))
    app[SAMPLER] = sampler_of(store, shared, in_flight)
    app.add_routes(exposition.routes(Scrapers(settings, store.tokens), app[SAMPLER]))
    return app


def inner_middlewares(settings: Settings, store: Store, cross_site: CrossSite) -> list[Middleware]:
    """The inner middlewares, in the order in which a request passes them."""
    middlewares = [limit_rate(settings)] if settings.rate_limit else []
    middlewares += [limit_passwords(settings), require_usable(store)]
    return [*middlewares, authenticate(settings, store.tokens, PageRoutes(settings), cross_site.check)]


def route_table(site: Site, store: Store, caches: Caches) -> list[Operation]:
    """The operations under one path prefix; links in their responses start with it."""
    records = [operation for kind in KINDS for operation in operations(kind, store, site, caches)]
    table: list[Operation] = []
    described = api_description.operations(site, table, problem_body)
    changes = changes_operations(store, site, caches)
    table += [*index.operations(site, table), *described, *records, *changes]
    return table


def mount(app: web.Application, prefix: str, table: Iterable[Operation]) -> None:
    """Add the operations with and without a trailing slash; all methods of a path share one resource."""
    resource = functools.cache(app.router.add_resource)
    for operation in table:
        bare = prefix + operation.path.rstrip("/")
        for path in (bare, bare + "/"):
            for method in operation.methods:
                resource(path).add_route(method, operation.handler)
                if method == "GET":
                    resource(path).add_route("HEAD", operation.handler)


def require_usable(store: Store) -> Middleware:
    """Reject requests until the database is set up, because nothing may be written before the indexes exist,
    and while it is restored."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not store.is_usable and not is_monitoring(request) and not request.path.startswith("/docs"):
            await store.require_usable()
        return await handler(request)

    return middleware


def finisher(cross_site: CrossSite, in_flight: InFlight) -> Callable[[web.Request, web.StreamResponse], None]:
    """The function that makes the final changes to each response: CORS headers, closing the connection."""

    def finish(request: web.Request, response: web.StreamResponse) -> None:
        in_flight.close_if_draining(response)
        cross_site.add_cors_headers(request, response)
        if request.content.exception() is not None:  # the rest of the body cannot be read
            response.force_close()

    return finish
