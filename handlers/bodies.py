"""Read request bodies within limits of time and size, and decompress them."""

from __future__ import annotations

import asyncio
import zlib

from aiohttp import web

from schemas.errors import Disconnected, InvalidJson, TooLarge, TooSlow, UnsupportedType
from schemas.language import Text

BODY_TIMEOUT_SECONDS = 10
MAX_COMPRESSED_BYTES_ON_LOOP = 8_000
"""Compressed bytes above which decompression runs in a thread."""
ENCODING_WBITS = {"gzip": zlib.MAX_WBITS | 16, "x-gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}


async def read_body(request: web.Request) -> bytes:
    """The complete body, decompressed."""
    coding = content_encoding(request) if request.body_exists else ""
    body = await receive_body(request)
    if not body or not coding:
        return body
    if len(body) > MAX_COMPRESSED_BYTES_ON_LOOP:
        return await asyncio.to_thread(decompress, body, coding, request.client_max_size)
    return decompress(body, coding, request.client_max_size)


def content_encoding(request: web.Request) -> str:
    """The Content-Encoding of the body; empty if it is not compressed."""
    sent = ",".join(request.headers.getall("Content-Encoding", ())).lower()
    codings = [coding for part in sent.split(",") if (coding := part.strip()) not in ("", "identity")]
    if not codings:
        return ""
    if len(codings) > 1 or codings[0] not in ENCODING_WBITS:
        raise UnsupportedType(Text("The Content-Encoding of a body must be gzip or deflate."))
    return codings[0]


async def receive_body(request: web.Request) -> bytes:
    """The body as sent, not yet decompressed."""
    try:
        # A body that has arrived completely needs no timeout.
        async with asyncio.timeout(None if request.content.is_eof() else BODY_TIMEOUT_SECONDS):
            return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise too_large(request.client_max_size) from None
    except TimeoutError:
        raise TooSlow from None
    except OSError:  # connection lost; TimeoutError, a subclass, is handled above
        raise Disconnected from None
    except web.RequestPayloadError:
        raise InvalidJson(Text("The body is incomplete: its chunks are not valid.")) from None


def decompress(body: bytes, coding: str, limit: int) -> bytes:
    """Decompress a body, never producing more than `limit` bytes."""
    stream = zlib.decompressobj(_window(body, coding))
    try:
        content = stream.decompress(body, limit + 1)
    except zlib.error:
        raise InvalidJson(Text("The body is not valid {coding}.", coding=coding)) from None
    if len(content) > limit:
        raise too_large(limit)
    if not stream.eof:
        raise InvalidJson(Text("The body is incomplete: its {coding} data ends too early.", coding=coding))
    if stream.unused_data:
        raise InvalidJson(Text("The body has extra bytes after the end of its {coding} data.", coding=coding))
    return content


def too_large(limit: int) -> TooLarge:
    return TooLarge(Text("The body is too large: at most {limit} bytes are accepted.", limit=limit))


def _window(body: bytes, coding: str) -> int:
    """zlib's wbits for a coding. Many clients send raw deflate data without the required zlib header."""
    if coding == "deflate" and body[0] & 0x0F != 8:
        return -zlib.MAX_WBITS
    return ENCODING_WBITS[coding]
