"""Response compression. Compressed responses that have an ETag are cached: they cost a quarter."""

from __future__ import annotations

import asyncio
import re
import zlib
from functools import lru_cache
from typing import cast

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from handlers.replies import Answer, Reply
from handlers.response_cache import ByteCache

SMALLEST = 1000
"""Size in bytes below which compression gains nothing."""
LONG = 100_000
"""Size in bytes above which compression runs in a thread."""
LEVEL = 4
FORMATS = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}
ACCEPTED = re.compile(r"\s*([\w*-]+)\s*(?:;\s*q=([01](?:\.\d{0,3})?)\s*)?", re.ASCII)


@lru_cache(256)
def accepted(header: str) -> str | None:
    """The best coding that an Accept-Encoding header allows; None to send the response uncompressed."""
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


def pack_answers(cache: ByteCache) -> Middleware:
    async def packing(answer: Answer, coding: str) -> Answer:
        key = ("compressed", coding, answer.status, answer.tag)
        if answer.tag and (cached := cache.take(*key)) is not None:
            return cast(Answer, cached)
        small = await packed_answer(answer, coding)
        if answer.tag:
            cache.keep(small, small.size, *key)
        return small

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        reply = await handler(request)
        coding = accepted(request.headers.get("Accept-Encoding", ""))
        if coding and isinstance(reply, Reply) and len(reply.answer.body) >= SMALLEST:
            reply.answer = await packing(reply.answer, coding)
        return reply

    return middleware


async def packed_answer(answer: Answer, coding: str) -> Answer:
    body, is_long = answer.body, len(answer.body) > LONG
    small = await asyncio.to_thread(pack, body, coding) if is_long else pack(body, coding)
    tagged = {"ETag": f"W/{answer.tag}"} if answer.tag else {}  # a weak ETag: same content, different bytes
    return Answer(small, {**answer.headers, "Content-Encoding": coding, **tagged}, answer.status)
