"""Answers are packed for clients that can unpack them; what has a tag is packed once and kept."""

from __future__ import annotations

import asyncio
import re
import zlib
from functools import lru_cache
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from handlers.memory import Memory

SMALLEST = 1000
"""Bytes below which packing gains nothing."""
LONG = 100_000
"""Bytes from which packing is left to a thread."""
LARGEST = 8 * 1024 * 1024
"""Bytes that a process keeps."""
LEVEL = 4
FORMATS = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}
ACCEPTED = re.compile(r"\s*([\w*-]+)\s*(?:;\s*q=([01](?:\.\d{0,3})?)\s*)?", re.ASCII)


@lru_cache(256)
def accepted(header: str) -> str | None:
    """The best coding that an Accept-Encoding header allows; None to send an answer as it is."""
    weights: dict[str, float] = {}
    for part in header.lower().split(","):
        if found := ACCEPTED.fullmatch(part):
            weights[found[1]] = float(found[2] or 1)
    chosen = max(FORMATS, key=lambda name: weights.get(name, weights.get("*", 0)))
    weight = weights.get(chosen, weights.get("*", 0))
    return chosen if weight > 0 and weight >= weights.get("identity", 0) else None


def pack(body: bytes, coding: str) -> bytes:
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, FORMATS[coding])
    return packer.compress(body) + packer.flush()


def pack_answers() -> Middleware:
    packed = Memory[bytes](LARGEST)

    async def packing(body: bytes, coding: str, tag: str) -> bytes:
        if tag and (kept := packed.take((coding, tag))) is not None:
            return kept
        small = await asyncio.to_thread(pack, body, coding) if len(body) > LONG else pack(body, coding)
        if tag:
            packed.keep((coding, tag), small, len(small))
        return small

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        answer: Any = await handler(request)
        coding = accepted(request.headers.get("Accept-Encoding", ""))
        if coding and is_worth_it(answer):
            tag = answer.headers.get("ETag", "")
            answer.body = await packing(answer.body, coding, tag)
            answer.headers["Content-Encoding"] = coding
            if tag:
                answer.headers["ETag"] = f"W/{tag}"  # the same record, in other bytes
        sent: web.StreamResponse = answer
        return sent

    return middleware


def is_worth_it(answer: Any) -> bool:
    body = getattr(answer, "body", None)
    return isinstance(body, bytes) and len(body) >= SMALLEST
