"""Pages for people: the documentation, and where a record's own address leads."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from aiohttp import web

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


def moved(to: str) -> web.Response:
    return web.Response(status=302, headers={"Location": to})


@cache
def asset(name: str) -> bytes:
    return files("aiohttp_apispec").joinpath("static", name).read_bytes()


def routes(site: Site) -> list[web.RouteDef]:
    async def root(request: web.Request) -> web.Response:
        return moved("/docs")

    async def docs(request: web.Request) -> web.Response:
        return web.Response(text=PAGE, content_type="text/html", headers={"Content-Security-Policy": POLICY})

    async def start(request: web.Request) -> web.Response:
        return web.Response(text=START % site.namespace.lstrip("/"), content_type="text/javascript")

    async def static(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in ASSETS:
            raise NoRoute
        return web.Response(
            body=asset(name), content_type=ASSETS[name], headers={"Cache-Control": "max-age=86400"}
        )

    def page(kind: Kind) -> web.RouteDef:
        async def record(request: web.Request) -> web.Response:
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
