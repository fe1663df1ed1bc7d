"""Pages for people: the documentation, and where a record's own address leads."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from aiohttp import web

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


def told(text: str, kind: str, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(Answer(text.encode(), {"Content-Type": f"{kind}; charset=utf-8", **(headers or {})}))


def moved(to: str) -> Reply:
    return Reply(Answer(b"", {"Location": to}, 302))


@cache
def asset(name: str) -> bytes:
    return files("aiohttp_apispec").joinpath("static", name).read_bytes()


def routes(site: Site) -> list[web.RouteDef]:
    async def root(request: web.Request) -> web.StreamResponse:
        return moved("/docs")

    async def docs(request: web.Request) -> web.StreamResponse:
        return told(PAGE, "text/html", {"Content-Security-Policy": POLICY})

    async def start(request: web.Request) -> web.StreamResponse:
        return told(START % site.namespace.lstrip("/"), "text/javascript")

    async def static(request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if name not in ASSETS:
            raise NoRoute
        headers = {"Content-Type": ASSETS[name], "Cache-Control": "max-age=86400"}
        return Reply(Answer(asset(name), headers))

    def page(kind: Kind) -> web.RouteDef:
        async def record(request: web.Request) -> web.StreamResponse:
            slug = request.match_info["slug"]
            query = f"by-slug/{slug}" if kind.is_post else f"?hide_empty=0&slug={slug}"
            return moved(f"{site.namespace}/{kind.plural}/{query}")

        return web.get(f"/{kind.page}/{{slug:[a-z0-9_-]+}}/", record)

    return [
        web.get("/", root),
        web.get("/docs", docs),
        web.get("/docs/start.js", start),
        web.get("/docs/{name}", static),
        *(page(kind) for kind in KINDS),
    ]
