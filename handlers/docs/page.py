"""The documentation page."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from aiohttp import web
from aiohttp.typedefs import Handler

from handlers.responses import static_response
from handlers.responses.prepared import PreparedResponse
from schemas.errors import NoRoute
from schemas.site import Site

ASSETS = {
    "swagger-ui-bundle.js": ("swagger_ui", "text/javascript; charset=utf-8"),
    "swagger-ui.css": ("swagger_ui", "text/css; charset=utf-8"),
    "favicon-32x32.png": ("swagger_ui", "image/png"),
    "start.js": ("assets", "text/javascript; charset=utf-8"),
    "kalends.css": ("assets", "text/css; charset=utf-8"),
}
"""Files of the documentation page, each with its folder and content type."""
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@cache
def asset(name: str) -> PreparedResponse:
    folder, content_type = ASSETS[name]
    return static_response(content(folder, name), content_type, {"Cache-Control": "max-age=86400"})


def content(folder: str, name: str) -> bytes:
    return files("handlers.docs").joinpath(folder, name).read_bytes()


def docs_page(site: Site) -> PreparedResponse:
    page = content("assets", "index.html").decode().format(namespace=site.namespace.lstrip("/"))
    headers = {"Content-Security-Policy": CONTENT_SECURITY_POLICY}
    return static_response(page.encode(), "text/html; charset=utf-8", headers)


def serving(response: PreparedResponse) -> Handler:
    async def serve(request: web.Request) -> web.StreamResponse:
        return response.respond_to(request)

    return serve


def routes(site: Site) -> list[web.RouteDef]:
    async def static(request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if name not in ASSETS:
            raise NoRoute
        return asset(name).respond_to(request)

    async def without_slash(request: web.Request) -> web.StreamResponse:
        # The addresses in the page are relative.
        return PreparedResponse(b"", {"Location": "../docs"}, 308).respond_to(request)

    return [
        web.get("/docs", serving(docs_page(site))),
        web.get("/docs/", without_slash),
        web.get("/docs/{name}", static),
    ]
