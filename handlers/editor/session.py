"""Signs in with a token, and out."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from aiohttp import web

from handlers.editor.cookie import cleared_cookie, session_cookie
from handlers.editor.frame import Frame, edit_link, see_other
from handlers.records import CALLER, WRONG_PASSWORD
from handlers.requests import body_values
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
        return await self._frame.respond(request, "sign-in.html", is_wrong=False)

    async def sign_in(self, request: web.Request) -> web.StreamResponse:
        sent = (await body_values(request)).get("token")
        token = sent.strip() if isinstance(sent, str) else ""
        if not TOKEN.fullmatch(token) or await self._find_caller(token) is None:
            request[WRONG_PASSWORD] = True
            return await self._frame.respond(request, "sign-in.html", 401, is_wrong=True)
        request["headers"]["Set-Cookie"] = session_cookie(token, self._frame.site.base_url)
        return see_other(request, self._target(request))

    async def sign_out(self, request: web.Request) -> web.StreamResponse:
        request["headers"]["Set-Cookie"] = cleared_cookie(self._frame.site.base_url)
        return see_other(request, self._frame.page(request).plain_link("/"))

    def _target(self, request: web.Request) -> str:
        """Where the visitor wanted to go; never to another site."""
        page = self._frame.page(request)
        wanted = page.value("next")
        return page.plain_link(wanted) if OWN_PATH.fullmatch(wanted) else edit_link(page, "/edit")
