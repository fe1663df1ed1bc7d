"""Requests from pages of other sites: CORS headers, and protection against CSRF and DNS rebinding."""

from __future__ import annotations

import re
import socket
from ipaddress import ip_address
from urllib.parse import urlsplit

from aiohttp import web

from config import Settings
from schemas.errors import Forbidden
from schemas.language import Text
from service import metrics
from service.page_routes import PageRoutes

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
ALLOWED_READ_HEADERS = "Authorization, X-Event-Password, If-None-Match, If-Modified-Since"
ALLOWED_WRITE_HEADERS = (
    "Authorization, Content-Type, If-Match, If-None-Match, If-Unmodified-Since, Idempotency-Key, "
    "X-Event-Password"
)
EXPOSED_HEADERS = (
    "X-TEC-Total, X-TEC-TotalPages, Link, ETag, Location, X-Request-Id, Retry-After, Idempotency-Replayed"
)
HOST = re.compile(r"(\[[^\]]*\]|[^:]*)(?::[0-9]*)?")
MAX_QUOTED_CHARS = 200

OTHER_SITE = Text(
    "Refused: this request comes from a page of another site ({origin}). Without a token, writes are only "
    "accepted from this service's own pages and from programs."
)
ADDED_BY_BROWSER = Text(
    "Refused: this request comes from a page of another site ({origin}), and a browser may have added its "
    "credentials. Send the token as Authorization: Bearer, or name the site in KALENDS_CORS_ORIGINS."
)
OTHER_PAGE = Text("Refused: this form was sent by a page of another site ({origin}).")
OTHER_HOST = Text(
    "Refused: {host} is not a name of this service. Without a token, writes are only accepted at its own "
    "address; set KALENDS_BASE_URL if it is reached by this name."
)


class CrossSite:
    """The cross-site rules that follow from the settings."""

    def __init__(self, settings: Settings) -> None:
        self._any_origin_reads = "*" in settings.cors_origins
        self._named_origins = frozenset(settings.cors_origins) - {"*"}
        self._pages = PageRoutes(settings)
        self._is_open = settings.auth_mode == "open"
        self._is_local = settings.is_local()
        base = urlsplit(settings.address)
        self._own_origin = f"{base.scheme}://{base.netloc}".lower()
        self._hosts = {"localhost", settings.host.lower(), (base.hostname or "").lower()}
        if not self._is_local:
            self._hosts.add(socket.gethostname().lower())

    def add_cors_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        """Add the CORS headers that let scripts of allowed origins read the response or send the request."""
        if (origin := request.headers.get("Origin")) is None or request.path == metrics.PATH:
            return
        is_named = origin.lower() in self._named_origins
        method = request.headers.get("Access-Control-Request-Method", request.method)
        if not is_named and not (self._any_origin_reads and method in SAFE_METHODS):
            return
        response.headers["Access-Control-Allow-Origin"] = origin.lower() if is_named else "*"
        response.headers["Access-Control-Expose-Headers"] = EXPOSED_HEADERS
        if request.method == "OPTIONS" and "Allow" in response.headers:
            methods = response.headers["Allow"] if is_named else ", ".join(SAFE_METHODS)
            response.headers["Access-Control-Allow-Methods"] = methods
            response.headers["Access-Control-Allow-Headers"] = (
                ALLOWED_WRITE_HEADERS if is_named else ALLOWED_READ_HEADERS
            )
            response.headers["Access-Control-Max-Age"] = "86400"

    def check(self, request: web.Request) -> None:
        """Reject a write that a page of another site makes a browser send."""
        if request.method in SAFE_METHODS:
            return
        scheme = request.headers.get("Authorization", "").partition(" ")[0].lower()
        if scheme == "bearer":
            return  # browsers never add it on their own, so the sender knows the token
        origin = request.headers.get("Origin", "").lower()
        if scheme:
            # Browsers add remembered Basic credentials to requests from any site's page.
            if self._is_of_another_site(request, origin) and origin not in self._named_origins:
                raise forbidden(ADDED_BY_BROWSER, origin=origin)
        elif self._is_open:
            if self._is_of_another_site(request, origin):
                raise forbidden(OTHER_SITE, origin=origin)
            if not self._is_own_host(host := request.headers.get("Host")):
                raise forbidden(OTHER_HOST, host=host or "")
        elif self._pages.has(request) and self._is_of_another_site(request, origin):
            # Browsers add the cookie of a session on their own, and nobody may be signed in by another site.
            raise forbidden(OTHER_PAGE, origin=origin)

    def _is_of_another_site(self, request: web.Request, origin: str) -> bool:
        if request.headers.get("Sec-Fetch-Site", "none").lower() not in ("none", "same-origin"):
            return True
        # The scheme is not compared: a proxy in front of this service may terminate TLS.
        own = request.headers.get("Host", "").lower()
        return origin not in ("", self._own_origin, f"http://{own}", f"https://{own}")

    def _is_own_host(self, header: str | None) -> bool:
        """Whether a Host header names this service, which rules out DNS rebinding: the attacker's own name
        would be in it. Ports are not compared, because they may be forwarded."""
        if header is None:
            return True  # HTTP/1.0; every browser sends the header
        found = HOST.fullmatch(header.strip().lower())
        name = found[1].strip("[]").removesuffix(".") if found else ""
        return name in self._hosts or name.endswith(".localhost") or self._is_own_address(name)

    def _is_own_address(self, name: str) -> bool:
        """Whether this is an IP address that can be ours; no other site can rebind an IP address."""
        try:
            address = ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or not self._is_local


def forbidden(message: Text, **values: str) -> Forbidden:
    # Headers may have bytes that are not text.
    printable = {name: value.encode("ascii", "backslashreplace").decode() for name, value in values.items()}
    shown = {name: value[:MAX_QUOTED_CHARS] or "?" for name, value in printable.items()}
    return Forbidden(Text(message.template, **shown))
