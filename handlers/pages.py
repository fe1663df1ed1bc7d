"""The documentation page, and redirects from a record's public URL to the API."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from aiohttp import web
from aiohttp.typedefs import Handler

from handlers.answers import lasting_answer
from handlers.replies import Answer, Reply
from schemas import KINDS
from schemas.errors import NoRoute
from schemas.kind import Kind
from schemas.site import Site

ASSETS = {
    "swagger-ui-bundle.js": ("swagger_ui", "text/javascript; charset=utf-8"),
    "swagger-ui.css": ("swagger_ui", "text/css; charset=utf-8"),
    "favicon-32x32.png": ("swagger_ui", "image/png"),
    "start.js": ("docs", "text/javascript; charset=utf-8"),
    "kalends.css": ("docs", "text/css; charset=utf-8"),
}
"""Files of the documentation page, each with its folder and content type."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@cache
def asset(name: str) -> Answer:
    folder, content_type = ASSETS[name]
    return lasting_answer(content(folder, name), content_type, {"Cache-Control": "max-age=86400"})


def content(folder: str, name: str) -> bytes:
    return files("handlers").joinpath(folder, name).read_bytes()


def docs_page(site: Site) -> Answer:
    page = content("docs", "index.html").decode().format(namespace=site.namespace.lstrip("/"))
    headers = {"Content-Security-Policy": POLICY}
    return lasting_answer(page.encode(), "text/html; charset=utf-8", headers)


def moved(to: str) -> Reply:
    return Reply(Answer(b"", {"Location": to}, 302))


def telling(answer: Answer) -> Handler:
    async def tell(request: web.Request) -> web.StreamResponse:
        return answer.to(request)

    return tell


def routes(site: Site) -> list[web.RouteDef]:
    async def root(request: web.Request) -> web.StreamResponse:
        return moved("/docs")

    async def static(request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if name not in ASSETS:
            raise NoRoute
        return asset(name).to(request)

    def page(kind: Kind) -> web.RouteDef:
        async def record(request: web.Request) -> web.StreamResponse:
            slug = request.match_info["slug"]
            query = f"by-slug/{slug}" if kind.is_post else f"?hide_empty=0&slug={slug}"
            return moved(f"{site.namespace}/{kind.plural}/{query}")

        return web.get(f"/{kind.page}/{{slug:[a-z0-9_-]+}}/", record)

    return [
        web.get("/", root),
        web.get("/docs", telling(docs_page(site))),
        web.get("/docs/{name}", static),
        *(page(kind) for kind in KINDS),
    ]
