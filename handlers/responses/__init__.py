"""Build responses: JSON bodies, list envelopes, pagination links and ETags."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import orjson

from handlers.responses.prepared import LastModified, OutgoingResponse, PreparedResponse
from schemas.kind import Document, Kind, RenderContext
from schemas.values.dates import http_date

JSON = "application/json; charset=utf-8"
REPRESENTATION_VERSION = 3
"""Part of every ETag. Increment it when the representation changes, to invalidate clients' cached copies."""


class RecordState(NamedTuple):
    """What the representation of a record depends on: its id and version and, for a term, its number of
    events. After a restore a version number may be given again, but not with the same time."""

    id: int
    version: int
    modified: datetime
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
    """The ETag of one version of a representation. That of a record starts with its `version_tag`."""
    return f'"{version}-{hashlib.blake2b(content, digest_size=8).hexdigest()}"'


def representation_tag(version: object, context: RenderContext, *depends: object) -> str:
    """The ETag of a representation, derived from everything that it depends on."""
    shared = (REPRESENTATION_VERSION, context.site.representation_key, context.key)
    return entity_tag(version, repr((shared, depends)).encode())


def modified_at(kind: Kind, record: Mapping[str, Any]) -> datetime:
    """When the representation of a record changed last. That of a term shows the number of its events."""
    modified: datetime = record["modified_utc"]
    counted = None if kind.is_post else record["events"]["as_of"]
    return max(modified, counted.as_datetime().replace(tzinfo=None)) if counted else modified


def record_response(
    kind: Kind, record: Document, context: RenderContext, tag: str, warnings: list[str], status: int = 200
) -> OutgoingResponse:
    """The response to a write: the record and any warnings."""
    headers = {"ETag": tag, "Last-Modified": http_date(modified_at(kind, record))}
    if status == 201:
        headers["Location"] = kind.rest_url(context.site, record["_id"])
    shown = kind.represent(kind, record, context) | ({"warnings": warnings} if warnings else {})
    return json_response(shown, status, headers)


def list_response(
    pairs: list[tuple[str, str]],
    kind: Kind,
    total: int,
    items: list[Fragment],
    query: Mapping[str, Any],
    context: RenderContext,
    modified: LastModified,
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
    tag = representation_tag(total, context, body["rest_url"], [tuple(item.state) for item in items])
    return PreparedResponse(to_json(body), headers | {"ETag": tag}, modified=modified)


LINK_KEY_PREFIXES = {"next": "next", "prev": "previous"}


def list_url(pairs: list[tuple[str, str]], kind: Kind, context: RenderContext) -> str:
    """The URL of the pages of this list, with every filter of the request; the number of a page follows."""
    pairs_to_keep = [(name, value) for name, value in pairs if name not in ("page", "password")]
    return f"{context.site.api}/{kind.plural}?{urlencode([*pairs_to_keep, ('page', '')], quote_via=quote)}"
