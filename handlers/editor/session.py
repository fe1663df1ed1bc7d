"""Signs in with a token, and out."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps

from aiohttp import web
from aiohttp.typedefs import Handler

from handlers.bodies import read_body
from handlers.editor.cookie import cleared_cookie, session_cookie
from handlers.editor.frame import Frame, edit_link, see_other
from handlers.records import CALLER, WRONG_PASSWORD
from handlers.requests import body_values, form_pairs
from schemas.caller import Caller

FindCaller = Callable[[str], Awaitable[Caller | None]]
"""(token) -> the caller that it belongs to; None if it is unknown, revoked or expired."""
OWN_PATH = re.compile(r"/edit(?:/[A-Za-z0-9_/-]*)?(?:\?[A-Za-z0-9_=&%.~+-]*)?")
TOKEN = re.compile(r"[A-Za-z0-9_-]{1,200}")


class SessionPages:
    """The handlers of the sign-in page."""

    def __init__(self, frame: Frame, find_caller: FindCaller) -> None:
        self._frame, self._find_caller = frame, find_caller

    async def form(self, request: web.Request) -> web.StreamResponse:
        if request[CALLER].role is not None:
            return see_other(request, self._target(request))
        return await self._ask(request, 200)

    async def sign_in(self, request: web.Request) -> web.StreamResponse:
        if await self._begin(request):
            return see_other(request, self._target(request))
        return await self._ask(request, 401, is_wrong=True)

    async def sign_out(self, request: web.Request) -> web.StreamResponse:
        request["headers"]["Set-Cookie"] = cleared_cookie(self._frame.site.base_url)
        return see_other(request, self._frame.page(request).unfiltered_link("/"))

    def required(self, handler: Handler) -> Handler:
        """A handler that asks strangers to sign in first. A form that was sent after its session has ended is
        kept: it goes on with the token."""

        @wraps(handler)
        async def checked(request: web.Request) -> web.StreamResponse:
            if request[CALLER].role is not None:
                return await handler(request)
            if request.method != "POST":
                page = self._frame.page(request)
                return see_other(request, edit_link(page, "/edit/sign-in", next=request.path_qs))
            if await self._begin(request):
                return await handler(request)
            pairs = form_pairs(await read_body(request))
            is_wrong = any(name == "token" for name, _ in pairs)
            return await self._ask(
                request, 401, [pair for pair in pairs if pair[0] != "token"], is_wrong=is_wrong
            )

        return checked

    async def _begin(self, request: web.Request) -> bool:
        """Begin a session with the token that was sent; False if there is none, or a wrong one."""
        sent = (await body_values(request)).get("token")
        token = sent.strip() if isinstance(sent, str) else ""
        caller = await self._find_caller(token) if TOKEN.fullmatch(token) else None
        if caller is None:
            if sent is not None:
                request[WRONG_PASSWORD] = True
            return False
        request[CALLER] = caller
        request["headers"]["Set-Cookie"] = session_cookie(token, self._frame.site.base_url)
        return True

    async def _ask(
        self,
        request: web.Request,
        status: int,
        kept: Sequence[tuple[str, str]] = (),
        *,
        is_wrong: bool = False,
    ) -> web.StreamResponse:
        return await self._frame.respond(request, "sign-in.html", status, is_wrong=is_wrong, kept=kept)

    def _target(self, request: web.Request) -> str:
        """Where the visitor wanted to go; never to another site."""
        page = self._frame.page(request)
        wanted = page.value("next")
        return page.plain_link(wanted) if OWN_PATH.fullmatch(wanted) else edit_link(page, "/edit")
