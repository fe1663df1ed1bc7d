"""Build the aiohttp application: routes, middlewares and caches."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import replace

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from config import Settings
from handlers import document, health, index, pages
from handlers.operations import Operation, operations
from handlers.records import Caches, caches
from handlers.response_cache import FRAGMENT_BYTES, RESPONSE_BYTES, ByteCache
from schemas import KINDS
from schemas.errors import Unavailable
from schemas.site import Site
from service.access import identify
from service.cross_site import CrossSite
from service.errors import answer_problems, problem_body
from service.limits import limit_passwords, limit_rate
from service.packing import pack_answers
from service.request_ids import REQUEST_IDS, RequestIds
from service.store import Store
from service.traffic import TRAFFIC, Traffic


def create_app(settings: Settings, store: Store) -> web.Application:
    """The application; it opens no files or connections of its own."""
    traffic, cross_site, ids = Traffic(settings), CrossSite(settings), RequestIds()
    responses, fragments = ByteCache(RESPONSE_BYTES), ByteCache(FRAGMENT_BYTES)
    outer = [answer_problems(ids, finishing(cross_site, traffic)), traffic.let_pass, pack_answers(responses)]
    passed = [*outer, *guards(settings, store, cross_site)]
    app = web.Application(middlewares=passed, client_max_size=settings.max_body)
    app[TRAFFIC], app[REQUEST_IDS] = traffic, ids
    shared = caches(store, responses, fragments)
    for prefix in (store.site.namespace, *settings.aliases):
        mount(app, prefix, route_table(replace(store.site, namespace=prefix), store, shared))
    app.add_routes(pages.routes(store.site))
    app.add_routes(health.routes(store))
    return app


def guards(settings: Settings, store: Store, cross_site: CrossSite) -> list[Middleware]:
    """The inner middlewares, in the order in which a request passes them."""
    passed = [limit_rate(settings)] if settings.rate_limit else []
    passed.append(limit_passwords(settings))
    if not store.started:
        passed.append(wait_for(store))
    return [*passed, identify(settings.access, store.tokens, cross_site.check)]


def route_table(site: Site, store: Store, caches: Caches) -> list[Operation]:
    """The operations under one path prefix; links in their responses start with it."""
    records = [operation for kind in KINDS for operation in operations(kind, store, site, caches)]
    table: list[Operation] = []
    described = document.operations(site, table, problem_body)
    table += [*index.operations(site, table), *described, *records]
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


def wait_for(store: Store) -> Middleware:
    """Reject requests until the database is set up: nothing may be written before the indexes exist."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not store.started and not request.path.startswith(("/health/", "/docs")):
            raise Unavailable
        return await handler(request)

    return middleware


def finishing(cross_site: CrossSite, traffic: Traffic) -> Callable[[web.Request, web.StreamResponse], None]:
    """The function that makes the final changes to each response: CORS headers, closing the connection."""

    def finish(request: web.Request, response: web.StreamResponse) -> None:
        traffic.say_goodbye(response)
        cross_site.let_read(request, response)
        if request.content.exception() is not None:  # the rest of the body cannot be read
            response.force_close()

    return finish
