"""Rate limits: requests and wrong passwords per minute."""

from __future__ import annotations

import asyncio
import re
import time
from ipaddress import IPv4Address, ip_address, ip_network
from math import ceil
from typing import NamedTuple
from weakref import WeakValueDictionary

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from cachetools import LRUCache

from config import Settings
from handlers.records import WRONG_PASSWORD
from schemas.errors import PasswordNeeded, TooMany
from schemas.kinds.event import EVENT
from service.http.in_flight import is_monitoring

WINDOW_SECONDS = 60.0
MAX_WRONG_PASSWORDS = 10
"""Wrong passwords per minute that one client may send for one event."""
MAX_TRACKED_CLIENTS = 50_000
ADDRESS_WITH_PORT = re.compile(r"(?P<v4>[^:\[\]]+):[0-9]+|\[(?P<v6>[^\[\]]+)\](:[0-9]+)?")


class WindowUsage(NamedTuple):
    """A client's count in the current window, and the seconds until the window ends."""

    used: int
    seconds_left: int


class FixedWindow:
    """Counts by key in windows of one minute. When too many keys are known, the one that was used least
    recently is forgotten."""

    def __init__(self) -> None:
        self.counts: LRUCache[str, tuple[float, int]] = LRUCache(MAX_TRACKED_CLIENTS)

    def usage(self, key: str, increment: int = 0) -> WindowUsage:
        now = time.monotonic()
        since, used = self.counts.get(key, (now, 0))
        if now - since >= WINDOW_SECONDS:
            since, used = now, 0
        if increment:
            self.counts[key] = (since, used + increment)
        return WindowUsage(used + increment, max(1, ceil(since + WINDOW_SECONDS - now)))


def client_of(request: web.Request, settings: Settings) -> str:
    """The client's address; X-Forwarded-For is used only as far as trusted proxies have set it."""

    def is_trusted(address: str) -> bool:
        try:
            return any(ip_address(address) in network for network in settings.trusted_proxies)
        except ValueError:
            return False

    # Some proxies append to the client's header, others add a line of their own.
    sent = ",".join(request.headers.getall("X-Forwarded-For", ()))
    hops = [hop.strip() for hop in sent.split(",") if hop.strip()]
    address = request.remote or ""
    while hops and is_trusted(address):
        address = without_port(hops.pop())
    return client_key(address)


def without_port(hop: str) -> str:
    """An address as some proxies write it, without its port and brackets: `192.0.2.1:5678`, `[::1]:80`."""
    found = ADDRESS_WITH_PORT.fullmatch(hop)
    return found["v4"] or found["v6"] if found else hop


def client_key(address: str) -> str:
    """The address, or its /64 network if it is IPv6: a client usually has all addresses of such a network."""
    try:
        ip = ip_address(address)
    except ValueError:
        return address
    if isinstance(ip, IPv4Address):
        return address
    return str(ip.ipv4_mapped or ip_network((int(ip), 64), strict=False))


def record_of(request: web.Request) -> str:
    """The record that a path names, regardless of leading zeros, upper case, endings and a trailing slash.
    The page of an event counts as its path by slug."""
    folders, _, name = request.path.rstrip("/").lower().rpartition("/")
    folder = folders.rpartition("/")[2]
    return f"{'by-slug' if folder == EVENT.page else folder}/{name.partition('.')[0].lstrip('0')}"


def may_have_password(request: web.Request) -> bool:
    """Whether a request may contain the password of an event."""
    if request.method in ("GET", "HEAD"):
        return "X-Event-Password" in request.headers or "password" in request.query_string
    return not request.match_info.keys().isdisjoint(("id", "slug")) and "/event" in request.path


def limit_rate(settings: Settings) -> Middleware:
    """Limit the requests per minute of each client; each process enforces an equal share of the limit."""
    window, limit = FixedWindow(), ceil(settings.rate_limit / settings.workers)

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if is_monitoring(request):
            return await handler(request)
        used, seconds = window.usage(client_of(request, settings), 1)
        request["headers"] |= {
            "RateLimit-Limit": str(limit),
            "RateLimit-Remaining": str(max(0, limit - used)),
            "RateLimit-Reset": str(seconds),
        }
        if used > limit:
            request["headers"]["Retry-After"] = str(seconds)
            raise TooMany
        return await handler(request)

    return middleware


def limit_passwords(settings: Settings) -> Middleware:
    """Limit the wrong passwords per minute of each client for each event, to prevent guessing."""
    window = FixedWindow()
    turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def key_of(request: web.Request) -> str:
        return f"{client_of(request, settings)} {record_of(request)}"

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not may_have_password(request):
            return await count_wrong(request, handler)
        # One at a time, or many could be tried before the first one is counted.
        async with turns.setdefault(key_of(request), asyncio.Lock()):
            return await count_wrong(request, handler)

    async def count_wrong(request: web.Request, handler: Handler) -> web.StreamResponse:
        if window.counts:  # usually there have been no wrong passwords
            used, seconds = window.usage(key_of(request))
            if used >= MAX_WRONG_PASSWORDS:
                request["headers"]["Retry-After"] = str(seconds)
                raise TooMany
        try:
            response = await handler(request)
        except PasswordNeeded as problem:
            if problem.was_wrong:
                window.usage(key_of(request), 1)
            raise
        if request.get(WRONG_PASSWORD):
            window.usage(key_of(request), 1)
        return response

    return middleware
