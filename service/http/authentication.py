"""Authentication: identifies the caller of each request by its token, if any."""

from __future__ import annotations

import base64
from collections.abc import Callable

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from config import Settings
from handlers.editor.cookie import COOKIE, cleared_cookie
from handlers.records import CALLER
from schemas.caller import EVERYBODY, PUBLIC, Caller
from schemas.errors import Unauthenticated
from service.http.in_flight import is_monitoring
from service.page_routes import PageRoutes
from service.tokens import Tokens


def sent_token(request: web.Request) -> str | None:
    """The token of an `Authorization: Bearer` or `Basic` header; None without one, empty if malformed."""
    if (header := request.headers.get("Authorization")) is None:
        return None
    scheme, _, value = header.partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value.strip(), validate=True).decode().partition(":")[2]
        except ValueError:
            return ""
    return ""


def anonymous_caller(mode: str) -> Caller:
    """The caller of requests without credentials."""
    return EVERYBODY if mode == "open" else PUBLIC


def authenticate(
    settings: Settings, tokens: Tokens, routes: PageRoutes, check: Callable[[web.Request], None]
) -> Middleware:
    """Middleware that authenticates the caller. A token is verified even in open mode, which needs none.
    `check` then rejects forged requests from pages of other sites."""

    anonymous = anonymous_caller(settings.auth_mode)

    async def caller_of(request: web.Request) -> Caller:
        if (token := sent_token(request)) is None:
            return await caller_of_cookie(request)
        if found := await tokens.caller(token):
            return found
        raise Unauthenticated

    async def caller_of_cookie(request: web.Request) -> Caller:
        """The caller who has signed in to the pages. The API ignores the cookie."""
        cookie = request.cookies.get(COOKIE)
        if not cookie or settings.auth_mode == "open" or not routes.has(request):
            return anonymous
        if found := await tokens.caller(cookie):
            return found
        request["headers"]["Set-Cookie"] = cleared_cookie(settings.address)
        return anonymous

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        # An unknown route is 404 for every caller: routing comes before authentication. Monitoring must not
        # wait for the database; the metrics have an authentication of their own.
        if request.match_info.http_exception is None and not is_monitoring(request):
            has_credentials = "Authorization" in request.headers or "Cookie" in request.headers
            request[CALLER] = await caller_of(request) if has_credentials else anonymous
            check(request)
        return await handler(request)

    return middleware
