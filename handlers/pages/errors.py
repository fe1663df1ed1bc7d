"""Error pages: what a browser gets where a program gets JSON. They need neither the database nor a caller."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

import orjson
from aiohttp import web

from handlers.pages.context import PageContext
from handlers.pages.meta import Meta
from handlers.pages.records import password_form
from handlers.pages.rendering import html_response
from handlers.records import CALLER
from handlers.requests import language_of
from handlers.responses.prepared import OutgoingResponse, PreparedResponse
from schemas.caller import PUBLIC
from schemas.errors import NoRoute, PasswordNeeded
from schemas.kind import Document
from schemas.language import Text
from schemas.site import Site

TITLES = {
    400: Text("Something in this address is not right"),
    401: Text("Your sign-in is not valid"),
    403: Text("This is not allowed"),
    404: Text("Page not found"),
    405: Text("This is not possible here"),
    410: Text("No longer in the calendar"),
    429: Text("Too many requests"),
    500: Text("Something went wrong"),
    503: Text("Not available at the moment"),
}
OTHER_TITLE = Text("The request cannot be served.")
EXPLANATIONS = {
    404: Text(
        "There is nothing at this address. It may be mistyped, or what was here has another address now."
    ),
    410: Text("What was at this address has been removed from the calendar."),
    429: Text("Please wait a minute, then try again."),
    503: Text("The calendar cannot be read right now. Please try again in a moment."),
}
"""What is said instead of the message for programs."""


class ErrorPages:
    """Turns the JSON error responses of page routes into pages."""

    def __init__(self, site: Site, api_prefixes: Sequence[str]) -> None:
        self._site = site
        self._programs = tuple(f"{prefix}/" for prefix in (*api_prefixes, "/health", "/metrics"))

    def show(self, request: web.Request, error: Exception, response: web.StreamResponse) -> None:
        """Replace the body of an error response if a browser has asked for a page."""
        if not isinstance(response, OutgoingResponse) or response.status < 400 or not self._is_page(request):
            return
        told = response.prepared_response
        shown = self._page(context_of(request, self._site), error, orjson.loads(told.body))
        response.prepared_response = PreparedResponse(
            shown.body, {**told.headers, **shown.headers}, response.status
        )

    def _is_page(self, request: web.Request) -> bool:
        is_program = f"{request.path}/".startswith(self._programs)
        return not is_program and "text/html" in request.headers.get("Accept", "")

    def _page(self, page: PageContext, error: Exception, told: Document) -> PreparedResponse:
        status = told["data"]["status"]
        if isinstance(error, PasswordNeeded):
            return password_form(page, status, was_wrong=error.was_wrong)
        params = told["data"].get("params")
        title = page.text(TITLES.get(status, OTHER_TITLE))
        values: Document = {
            "code": status,
            "is_embedded": page.path.startswith("/embed/"),
            "heading": title,
            "explanation": told["message"]
            if has_own_text(error, status)
            else page.text(EXPLANATIONS[status]),
            "params": params if isinstance(params, dict) else {},
            "meta": Meta(title, is_indexed=False),
        }
        return html_response("error.html", page, status, is_private=True, **values)


def has_own_text(error: Exception, status: int) -> bool:
    """Whether the message says more than the explanation of its status."""
    return status not in EXPLANATIONS or (isinstance(error, NoRoute) and error.text is not NoRoute.message)


def context_of(request: web.Request, site: Site) -> PageContext:
    """The context of an error page. The path may be anything: `//host/` in a link would be another site."""
    lang = request.query.get("lang")
    path = "/" + quote(request.path.lstrip("/"))
    caller = request.get(CALLER, PUBLIC)
    return PageContext(site, caller, language_of(request), path, [("lang", lang)] if lang else [])
