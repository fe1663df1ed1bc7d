"""Chooses between JSON and other formats by the Accept header."""

from __future__ import annotations

import re
from functools import lru_cache

from aiohttp import web
from aiohttp.typedefs import Handler

from schemas.formats import Format, formats_of
from schemas.kind import Kind

ACCEPTED = re.compile(r"\s*([\w.+*-]+/[\w.+*-]+)\s*((?:;[^,]*)?)", re.ASCII)
QUALITY = re.compile(r";\s*q=([01](?:\.\d{0,3})?)\s*(?:;|$)", re.ASCII | re.IGNORECASE)
JSON = "application/json"
FORMAT = "format"
"""Key of a request: the format that it asks for."""


def negotiating(kind: Kind, as_json: Handler, in_format: Handler) -> Handler:
    """A handler that responds with JSON unless the request prefers another format."""
    formats = formats_of(kind)
    if not formats:
        return as_json
    by_type = {one.media_type: one for one in formats.values()}

    async def handler(request: web.Request) -> web.StreamResponse:
        accepted = request.headers.get("Accept", "*/*")
        if accepted != "*/*" and (chosen := preferred(accepted, tuple(by_type))):
            request[FORMAT] = by_type[chosen]
            return await in_format(request)
        return await as_json(request)

    return handler


def requested_format(request: web.Request, formats: dict[str, Format]) -> Format:
    """The format that the path ends with, or that the Accept header has chosen."""
    ending = request.match_info.get("ending")
    return formats[ending] if ending else request[FORMAT]


@lru_cache(1000)
def preferred(header: str, types: tuple[str, ...]) -> str | None:
    """The preferred one of these media types; None if JSON is accepted as gladly, or none of them is."""
    weights: dict[str, float] = {}
    for part in header.lower().split(","):
        if found := ACCEPTED.fullmatch(part):
            quality = QUALITY.search(found[2])
            weights[found[1]] = float(quality[1]) if quality else 1.0

    def weight(media_type: str) -> float:
        names = (media_type, f"{media_type.partition('/')[0]}/*", "*/*")
        return next((weights[name] for name in names if name in weights), 0.0)

    best = max(types, key=weight)
    # A type that is only covered by a wildcard was not asked for.
    return best if best in weights and weight(best) > weight(JSON) else None
