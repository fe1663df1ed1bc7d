"""Answers, and how they are sent. What is the same for everybody who gets an answer is written once: aiohttp
makes the head of each response anew, which takes longer than to find an answer that is kept."""

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
    # Answers differ by caller and language; a cache must ask again, which an ETag makes cheap.
    "Cache-Control": "no-cache",
    "Vary": "Authorization, X-Event-Password, Accept-Language, Accept-Encoding, Origin",
    # Without it aiohttp tells its own version, and Python's.
    "Server": "kalends",
}
"""Of every answer that does not say otherwise."""
BARE = (204, 304)
"""Statuses without a body, whose length would be that of another answer."""
REASONS = {499: "Client Closed Request"}
"""Statuses that Python has no name for. The client never reads this one; the log does."""
CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Answer:
    """An answer that can be given more than once. Its head is what is sent of its status and headers."""

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
        """What a client gets: 304 if it has this already."""
        return not_modified(request, self.tag) or Reply(self)


class Reply(web.StreamResponse):
    """An answer on its way to one client. Its headers are sent beside those of the answer."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(status=answer.status)
        self.answer = answer
        self._asked: web.BaseRequest | None = None

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter:
        self._asked = request
        return request.writer

    async def write_eof(self, data: bytes = b"") -> None:
        request = self._asked
        assert request is not None, "prepare it first"
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
        # Answers that are ready at the same moment are sent one right after the other: the same work over and
        # over is quicker than by turns with other work, since the processor has at hand what it needs.
        await asyncio.sleep(0)
        await request.writer.write_eof(b"".join(parts))
        self._body_length = len(body)  # for the request log

    def _connection(self, request: web.BaseRequest) -> bytes:
        if not self.keep_alive:
            return b"Connection: close\r\n"
        return b"" if request.version >= HttpVersion11 else b"Connection: keep-alive\r\n"

    @property
    def keep_alive(self) -> bool | None:
        """As the client wants it, unless the connection was told to end."""
        forced = super().keep_alive
        return self._asked.keep_alive if forced is None and self._asked else forced


def not_modified(request: web.Request, tag: str) -> Reply | None:
    """304, if the client says that it has what the tag names."""
    held = request.headers.get("If-None-Match")
    if held is None or not tag or (tag not in held and held.strip() != "*"):
        return None
    return Reply(Answer(b"", {"ETag": tag}, 304))


def written(headers: Mapping[str, str]) -> bytes:
    if CONTROL.search("".join(headers.values())):
        raise ValueError(f"a header would end too early: {headers}")
    return "".join([f"{name}: {value}\r\n" for name, value in headers.items()]).encode()


@lru_cache(100)
def _beginning(status: int, names: tuple[str, ...]) -> bytes:
    """The status, and the headers of every answer; an answer may have its own by some of their names."""
    others = {name: value for name, value in HEADERS.items() if name not in names}
    reason = REASONS.get(status) or HTTPStatus(status).phrase
    return f"{status} {reason}\r\n".encode() + written(others)


@lru_cache(1)
def _date(second: int) -> bytes:
    return written({"Date": formatdate(second, usegmt=True)})
