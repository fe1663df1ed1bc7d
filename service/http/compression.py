"""Response compression. Compressed responses that have an ETag are cached: they cost a quarter."""

from __future__ import annotations

import asyncio
import re
import zlib
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import cast

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from handlers.responses.cache import ByteCache
from handlers.responses.prepared import OutgoingResponse, PreparedResponse, compressed_tag
from handlers.responses.streamed import StreamedResponse
from handlers.time_slices import let_others_run

MIN_COMPRESSIBLE_BYTES = 1000
"""Size in bytes below which compression gains nothing."""
MAX_BYTES_ON_LOOP = 100_000
"""Size in bytes above which compression runs in a thread."""
THREADS = ThreadPoolExecutor(2, "compression")
"""Not those of the event loop: while MongoDB does not answer, all of them wait for it."""
COMPRESSION_LEVEL = 4
ENCODING_WBITS = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}
ACCEPT_ENCODING_ITEM = re.compile(r"\s*([\w*-]+)\s*(?:;\s*q=([01](?:\.\d{0,3})?)\s*)?", re.ASCII)


@lru_cache(256)
def accepted_encoding(header: str) -> str | None:
    """The best coding that an Accept-Encoding header allows; None to send the response uncompressed."""
    weights: dict[str, float] = {}
    for part in header.lower().split(","):
        if found := ACCEPT_ENCODING_ITEM.fullmatch(part):
            weights[found[1]] = float(found[2] or 1)
    chosen = max(ENCODING_WBITS, key=lambda name: weights.get(name, weights.get("*", 0)))
    weight = weights.get(chosen, weights.get("*", 0))
    return chosen if weight > 0 and weight >= weights.get("identity", 0) else None


def compress(body: bytes, coding: str) -> bytes:
    compressor = zlib.compressobj(COMPRESSION_LEVEL, zlib.DEFLATED, ENCODING_WBITS[coding])
    return compressor.compress(body) + compressor.flush()


def compress_responses(cache: ByteCache) -> Middleware:
    async def compressed(original: PreparedResponse, coding: str) -> PreparedResponse:
        # Callers may get the same body with different headers.
        key = ("compressed", coding, original.status, original.tag, original.headers.get("Cache-Control"))
        cached = cast(PreparedResponse | None, cache.take(*key) if original.tag else None)
        if cached and cached.headers.get("Last-Modified") == original.headers.get("Last-Modified"):
            return cached
        await let_others_run()
        body = cached.body if cached else await compress_body(original.body, coding)
        result = PreparedResponse(body, compressed_headers(original, coding), original.status)
        if original.tag:
            cache.keep(result, result.size, *key)
        return result

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        response = await handler(request)
        coding = accepted_encoding(request.headers.get("Accept-Encoding", ""))
        if (
            coding
            and isinstance(response, OutgoingResponse)
            and len(response.prepared_response.body) >= MIN_COMPRESSIBLE_BYTES
        ):
            response.prepared_response = await compressed(response.prepared_response, coding)
        elif coding and request.method != "HEAD" and is_compressible(response):
            response.enable_compression(web.ContentCoding(coding))
        return response

    return middleware


def is_compressible(response: web.StreamResponse) -> bool:
    """Whether a response is compressed while it is sent."""
    return isinstance(response, StreamedResponse) and not response.is_endless


async def compress_body(body: bytes, coding: str) -> bytes:
    if len(body) <= MAX_BYTES_ON_LOOP:
        return compress(body, coding)
    return await asyncio.get_running_loop().run_in_executor(THREADS, compress, body, coding)


def compressed_headers(original: PreparedResponse, coding: str) -> dict[str, str]:
    """The headers of a compressed response: other bytes have another ETag."""
    tagged = {"ETag": compressed_tag(original.tag, coding)} if original.tag else {}
    return {**original.headers, "Content-Encoding": coding, **tagged}
