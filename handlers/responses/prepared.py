"""Responses, and how they are sent. The status line and headers of a cached response are serialized once:
aiohttp would serialize them for each request, which takes longer than the cache lookup."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import HttpVersion11

from schemas.values.dates import http_date

DEFAULT_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # Responses vary by caller and language: caches must revalidate, which ETags make cheap.
    "Cache-Control": "no-cache",
    "Vary": "Authorization, X-Event-Password, Accept, Accept-Language, Accept-Encoding, Origin",
    # By default aiohttp would reveal its own version and Python's.
    "Server": "kalends",
}
"""Default headers of every response."""
NO_BODY_STATUSES = (204, 304)
"""Statuses without a body or Content-Length; in a 304 it would be the length of the 200 response."""
REASON_PHRASES = {499: "Client Closed Request"}
"""Reason phrases missing from HTTPStatus. No client receives this one: the connection is already closed."""
CODINGS = ("gzip", "deflate")
"""The codings of compressed responses."""
CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f]")


class LastModified(NamedTuple):
    """When a representation changed last, in UTC."""

    shown: datetime
    is_exact: bool
    """Whether no other representation has this time, so that If-Modified-Since can tell them apart."""


class PreparedResponse:
    """A response that can be sent more than once; `head` is its serialized status and headers."""

    __slots__ = ("body", "head", "headers", "modified", "status", "tag")

    def __init__(
        self,
        body: bytes,
        headers: Mapping[str, str],
        status: int = 200,
        modified: LastModified | None = None,
    ) -> None:
        if modified:
            headers = {**headers, "Last-Modified": http_date(modified.shown)}
        self.body, self.headers, self.status = body, headers, status
        self.tag = headers.get("ETag", "")
        self.modified = modified.shown if modified and modified.is_exact else None
        length = {} if status in NO_BODY_STATUSES else {"Content-Length": str(len(body))}
        self.head = _status_and_default_headers(status, tuple(headers)) + header_lines({**headers, **length})

    @property
    def size(self) -> int:
        return len(self.head) + len(self.body)

    def respond_to(self, request: web.Request, reliable_after: datetime = datetime.min) -> OutgoingResponse:
        """The response to one request: 304 if the client already has this version. Times up to
        `reliable_after` do not tell that."""
        unchanged = not_modified(request, self.tag, self.headers)
        if unchanged is None and self.modified is not None and self.modified > reliable_after:
            unchanged = not_modified_since(request, self.tag, self.modified)
        return OutgoingResponse(unchanged or self)


class OutgoingResponse(web.StreamResponse):
    """Sends a prepared response to one client, with its own headers in addition."""

    def __init__(self, prepared_response: PreparedResponse) -> None:
        super().__init__(status=prepared_response.status)
        self.prepared_response = prepared_response
        self._client_request: web.BaseRequest | None = None

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter:
        self._client_request = request
        return request.writer

    async def write_eof(self, data: bytes = b"") -> None:
        request = self._client_request
        assert request is not None, "prepare() was not called"
        body = b"" if request.method == "HEAD" else self.prepared_response.body
        parts = (
            b"HTTP/1.1 " if request.version >= HttpVersion11 else b"HTTP/1.0 ",
            self.prepared_response.head,
            _date(int(time.time())),
            header_lines(self.headers),
            self._connection(request),
            b"\r\n",
            body,
        )
        # Responses that become ready in the same event loop iteration are written back to back: repeating one
        # kind of work is faster than alternating with others, because the CPU caches stay warm.
        await asyncio.sleep(0)
        await request.writer.write_eof(b"".join(parts))
        self._body_length = len(body)  # for the request log

    def _connection(self, request: web.BaseRequest) -> bytes:
        if not self.keep_alive:
            return b"Connection: close\r\n"
        return b"" if request.version >= HttpVersion11 else b"Connection: keep-alive\r\n"

    @property
    def keep_alive(self) -> bool | None:
        """As the client asks, unless the response forces the connection to close."""
        forced = super().keep_alive
        return self._client_request.keep_alive if forced is None and self._client_request else forced


def not_modified(
    request: web.Request, tag: str, headers: Mapping[str, str] | None = None
) -> PreparedResponse | None:
    """A 304 response if If-None-Match contains the ETag. Clients replace the headers that they have kept with
    its own, so it has those of the full response in place of the default ones."""
    known = sent_header(request, "If-None-Match")
    if known is None or not tag:
        return None
    tags = (tag, *(compressed_tag(tag, coding) for coding in CODINGS))
    held = tag if known.strip() == "*" else next((one for one in tags if one in known), None)
    if held is None:
        return None
    own = {name: value for name, value in (headers or {}).items() if name in DEFAULT_HEADERS}
    return PreparedResponse(b"", {"ETag": held, **own}, 304)


def compressed_tag(tag: str, coding: str) -> str:
    """The ETag of a compressed response. A weak one is the same."""
    return tag if tag.startswith("W/") else f'{tag[:-1]}-{coding}"'


def not_modified_since(request: web.Request, tag: str, modified: datetime) -> PreparedResponse | None:
    """A 304 response if nothing has changed since the time that the client names. An ETag tells more."""
    since = sent_time(request, "If-Modified-Since")
    if since is None or "If-None-Match" in request.headers or since < modified:
        return None
    return PreparedResponse(b"", {"ETag": tag}, 304)


def sent_header(request: web.Request, name: str) -> str | None:
    """The value of a header that may be sent in several lines; None if it is not sent."""
    lines = request.headers.getall(name, ())
    return ", ".join(lines) if lines else None


def sent_time(request: web.Request, name: str) -> datetime | None:
    """The time in a header, in UTC; None without the header, or if it is not a time."""
    if (text := request.headers.get(name)) is None:
        return None
    try:
        time = parsedate_to_datetime(text)
        return time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None


def header_lines(headers: Mapping[str, str]) -> bytes:
    if CONTROL_CHARACTERS.search("".join(headers.values())):
        raise ValueError(f"control character in a header value: {headers}")
    return "".join([f"{name}: {value}\r\n" for name, value in headers.items()]).encode()


@lru_cache(100)
def _status_and_default_headers(status: int, names: tuple[str, ...]) -> bytes:
    """The status line and the default headers, without those in `names`, which the response sets itself."""
    others = {name: value for name, value in DEFAULT_HEADERS.items() if name not in names}
    reason = REASON_PHRASES.get(status) or HTTPStatus(status).phrase
    return f"{status} {reason}\r\n".encode() + header_lines(others)


@lru_cache(1)
def _date(second: int) -> bytes:
    return header_lines({"Date": formatdate(second, usegmt=True)})
