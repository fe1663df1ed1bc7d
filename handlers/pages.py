"""Pages for people: the documentation, and where a record's own address leads."""

from __future__ import annotations

from collections.abc import Mapping
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
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui-standalone-preset.js": "text/javascript",
    "swagger-ui.css": "text/css",
    "favicon-32x32.png": "image/png",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'"
)
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Kalends API</title>
<link rel="icon" type="image/png" href="docs/favicon-32x32.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/swagger-ui-standalone-preset.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
"""
START = """window.ui = SwaggerUIBundle({
  url: "%s/doc" + window.location.search,
  dom_id: "#swagger-ui",
  deepLinking: true,
  presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset],
  layout: "BaseLayout",
});
"""


def text(said: str, content_type: str, headers: Mapping[str, str] | None = None) -> Answer:
    return lasting_answer(said.encode(), f"{content_type}; charset=utf-8", headers)


@cache
def asset(name: str) -> Answer:
    body = files("aiohttp_apispec").joinpath("static", name).read_bytes()
    return lasting_answer(body, ASSETS[name], {"Cache-Control": "max-age=86400"})


def moved(to: str) -> Reply:
    return Reply(Answer(b"", {"Location": to}, 302))


def telling(answer: Answer) -> Handler:
    async def tell(request: web.Request) -> web.StreamResponse:
        return answer.to(request)

    return tell


def routes(site: Site) -> list[web.RouteDef]:
    docs = text(PAGE, "text/html", {"Content-Security-Policy": POLICY})
    start = text(START % site.namespace.lstrip("/"), "text/javascript")

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
        web.get("/docs", telling(docs)),
        web.get("/docs/start.js", telling(start)),
        web.get("/docs/{name}", static),
        *(page(kind) for kind in KINDS),
    ]
