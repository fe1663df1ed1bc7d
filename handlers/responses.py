"""Build responses: JSON bodies, list envelopes, pagination links and ETags."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import orjson
from aiohttp import web

from handlers.prepared_response import OutgoingResponse, PreparedResponse
from schemas.kind import Document, Kind, RenderContext

JSON = "application/json; charset=utf-8"
REPRESENTATION_VERSION = 3
"""Part of every ETag. Increment it when the representation changes, to invalidate clients' cached copies."""


class RecordState(NamedTuple):
    """What the representation of a record depends on: its id and version and, for a term, its number of
    events."""

    id: int
    version: int
    events: int | None


class Fragment(NamedTuple):
    """A record rendered for a list."""

    state: RecordState
    body: bytes


def to_json(data: Any) -> bytes:
    # The bytes that orjson returns can occupy twice the memory they need; the copy trims them for caching.
    return bytes(memoryview(orjson.dumps(data)))


def static_response(
    body: bytes, content_type: str = JSON, headers: Mapping[str, str] | None = None
) -> PreparedResponse:
    """A response that does not change while the service runs."""
    return PreparedResponse(
        body, {"Content-Type": content_type, "ETag": entity_tag(0, body), **(headers or {})}
    )


def json_response(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> OutgoingResponse:
    return OutgoingResponse(
        PreparedResponse(orjson.dumps(data), {"Content-Type": JSON, **(headers or {})}, status)
    )


def entity_tag(version: object, content: bytes) -> str:
    """The ETag of one version of a representation; it starts with the record's version, for If-Match."""
    return f'"{version}-{hashlib.blake2b(content, digest_size=8).hexdigest()}"'


def representation_tag(version: int, context: RenderContext, *depends: object) -> str:
    """The ETag of a representation, derived from everything that it depends on."""
    shared = (REPRESENTATION_VERSION, context.site.representation_key, context.key)
    return entity_tag(version, repr((shared, depends)).encode())


def record_response(
    kind: Kind, record: Document, context: RenderContext, tag: str, warnings: list[str], status: int = 200
) -> OutgoingResponse:
    """The response to a write: the record and any warnings."""
    headers = {"ETag": tag}
    if status == 201:
        headers["Location"] = kind.rest_url(context.site, record["_id"])
    shown = kind.represent(kind, record, context) | ({"warnings": warnings} if warnings else {})
    return json_response(shown, status, headers)


def if_match_versions(request: web.Request) -> frozenset[int] | None:
    """The record versions that an If-Match header accepts; None for any."""
    header = request.headers.get("If-Match", "*")
    if header.strip() == "*":
        return None
    return frozenset(int(found) for found in re.findall(r'"([0-9]{1,18})-[0-9a-f]+"', header))


def list_response(
    pairs: list[tuple[str, str]],
    kind: Kind,
    total: int,
    items: list[Fragment],
    query: Mapping[str, Any],
    context: RenderContext,
) -> PreparedResponse:
    """One page of a list, assembled from rendered records."""
    number, pages = query["page"], math.ceil(total / query["per_page"])
    links = {"next": number + 1 if number < pages else 0, "prev": number - 1 if number > 1 else 0}
    pages_url = list_url(pairs, kind, context)
    urls = {name: f"{pages_url}{to}" for name, to in links.items() if to}
    body: Document = {kind.plural: [orjson.Fragment(item.body) for item in items]}
    body["rest_url"] = f"{pages_url}{number}"
    body |= {f"{long}_rest_url": urls[name] for name, long in LINK_KEY_PREFIXES.items() if name in urls}
    body |= {"total": total, "total_pages": pages}
    headers = {"Content-Type": JSON, "X-TEC-Total": str(total), "X-TEC-TotalPages": str(pages)}
    if urls:
        headers["Link"] = ", ".join(f'<{url}>; rel="{name}"' for name, url in urls.items())
    # Not a hash of the body: that of a page takes as long as parsing its query.
    tag = representation_tag(total, context, body["rest_url"], [item.state for item in items])
    return PreparedResponse(to_json(body), headers | {"ETag": tag})


LINK_KEY_PREFIXES = {"next": "next", "prev": "previous"}


def list_url(pairs: list[tuple[str, str]], kind: Kind, context: RenderContext) -> str:
    """The URL of the pages of this list, with every filter of the request; the number of a page follows."""
    pairs_to_keep = [(name, value) for name, value in pairs if name not in ("page", "password")]
    return f"{context.site.api}/{kind.plural}?{urlencode([*pairs_to_keep, ('page', '')], quote_via=quote)}"
