"""Renders templates: HTML responses, with headers that forbid everything that the pages do not need."""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path

from aiohttp import web
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from handlers.pages.context import PageContext
from handlers.responses import entity_tag, static_response
from handlers.responses.prepared import DEFAULT_HEADERS, PreparedResponse
from schemas.errors import NoRoute
from schemas.language import LANGUAGES

HTML = "text/html; charset=utf-8"
ASSETS = files("handlers.pages").joinpath("assets")
TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
NAMES = frozenset(file.name for file in ASSETS.iterdir())
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: https: http:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors {ancestors}"
)
"""Images may be of other hosts: those of events are where their organizers have put them."""
TEMPLATES = Environment(
    loader=ChoiceLoader([PackageLoader("handlers.pages"), PackageLoader("handlers.editor")]),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def load_templates() -> None:
    """Compile all templates: requests would wait for it, up to 0.1 s for one."""
    for name in TEMPLATES.list_templates():
        TEMPLATES.get_template(name)


def html_response(
    template: str,
    page: PageContext,
    status: int = 200,
    *,
    is_embedded: bool = False,
    is_private: bool = False,
    **values: object,
) -> PreparedResponse:
    """A page. Nobody may keep a private one."""
    body = render(template, page, is_embedded=is_embedded, **values)
    policy = POLICY.format(ancestors="*" if is_embedded else "'self'")
    headers = {"Content-Type": HTML, "Content-Language": page.language, "Content-Security-Policy": policy}
    # A browser sends the cookie of its session with every request for a page.
    headers["Vary"] = f"{DEFAULT_HEADERS['Vary']}, Cookie"
    headers["Cache-Control"] = "private, no-cache" if page.caller.role else "no-cache"
    # Without a referrer browsers send forms with `Origin: null`, as if they came from another site.
    headers["Referrer-Policy"] = "same-origin"
    if is_private:
        headers["Cache-Control"] = "no-store"
    elif status == 200:
        headers["ETag"] = entity_tag(0, body)
    return PreparedResponse(body, headers, status)


def render(template: str, page: PageContext, **values: object) -> bytes:
    shared = {"page": page, "local": page.local, "asset": asset_path, "languages": LANGUAGES, "_": page.text}
    return TEMPLATES.get_template(template).render(shared | values).encode()


def asset_path(page: PageContext, name: str) -> str:
    """The path of a file. It changes with the content, so that browsers may keep it for ever."""
    return page.plain_link(f"/assets/{name}?v={_digest(name)}")


@cache
def _digest(name: str) -> str:
    return blake2b(_content(name), digest_size=6).hexdigest()


def _content(name: str) -> bytes:
    return ASSETS.joinpath(name).read_bytes()


@cache
def asset(name: str) -> PreparedResponse:
    return static_response(
        _content(name), TYPES[Path(name).suffix], {"Cache-Control": "max-age=31536000, immutable"}
    )


async def send_asset(request: web.Request) -> web.StreamResponse:
    if (name := request.match_info["name"]) not in NAMES:
        raise NoRoute
    return asset(name).respond_to(request)
