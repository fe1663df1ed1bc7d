"""Responses, and how they are sent. The status line and headers of a cached response are serialized once:
aiohttp would serialize them for each request, which takes longer than the cache lookup."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import HttpVersion11

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # Responses vary by caller and language: caches must revalidate, which ETags make cheap.
    "Cache-Control": "no-cache",
    "Vary": "Authorization, X-Event-Password, Accept-Language, Accept-Encoding, Origin",
    # By default aiohttp would reveal its own version and Python's.
    "Server": "kalends",
}
"""Default headers of every response."""
BARE = (204, 304)
"""Statuses without a body or Content-Length; in a 304 it would be the length of the 200 response."""
REASONS = {499: "Client Closed Request"}
"""Reason phrases missing from HTTPStatus. No client receives this one: the connection is already closed."""
CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Answer:
    """A response that can be sent more than once; `head` is its serialized status and headers."""

    __slots__ = ("body", "head", "headers", "status", "tag")

    def __init__(self, body: bytes, headers: Mapping[str, str], status: int = 200) -> None:
        self.body, self.headers, self.status = body, headers, status
        self.tag = headers.get("ETag", "")
        length = {} if status in BARE else {"Content-Length": str(len(body))}
        self.head = _beginning(status, tuple(headers)) + written({**headers, **length})

    @property
    def size(self) -> int:
        return len(self.head) + len(self.body)

    def to(self, request: web.Request) -> Reply:
        """The response to one request: 304 if the client already has this version."""
        return not_modified(request, self.tag) or Reply(self)


class Reply(web.StreamResponse):
    """A response on its way to one client. Its own headers are sent in addition to those of `answer`."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(status=answer.status)
        self.answer = answer
        self._asked: web.BaseRequest | None = None

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter:
        self._asked = request
        return request.writer

    async def write_eof(self, data: bytes = b"") -> None:
        request = self._asked
        assert request is not None, "prepare() was not called"
        body = b"" if request.method == "HEAD" else self.answer.body
        parts = (
            b"HTTP/1.1 " if request.version >= HttpVersion11 else b"HTTP/1.0 ",
            self.answer.head,
            _date(int(time.time())),
            written(self.headers),
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
        return self._asked.keep_alive if forced is None and self._asked else forced


def not_modified(request: web.Request, tag: str) -> Reply | None:
    """A 304 response if If-None-Match contains the ETag."""
    held = request.headers.get("If-None-Match")
    if held is None or not tag or (tag not in held and held.strip() != "*"):
        return None
    return Reply(Answer(b"", {"ETag": tag}, 304))


def written(headers: Mapping[str, str]) -> bytes:
    if CONTROL.search("".join(headers.values())):
        raise ValueError(f"control character in a header value: {headers}")
    return "".join([f"{name}: {value}\r\n" for name, value in headers.items()]).encode()


@lru_cache(100)
def _beginning(status: int, names: tuple[str, ...]) -> bytes:
    """The status line and the default headers, without those in `names`, which the response sets itself."""
    others = {name: value for name, value in HEADERS.items() if name not in names}
    reason = REASONS.get(status) or HTTPStatus(status).phrase
    return f"{status} {reason}\r\n".encode() + written(others)


@lru_cache(1)
def _date(second: int) -> bytes:
    return written({"Date": formatdate(second, usegmt=True)})
