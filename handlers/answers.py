"""Answers: JSON bodies, list envelopes, links and entity tags."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import orjson
from aiohttp import web

from handlers.parameters import query_pairs
from schemas.kind import Document, Kind, View


def json_answer(
    data: Any, status: int = 200, headers: Mapping[str, str] | None = None, tag: str = ""
) -> web.Response:
    return bytes_answer(orjson.dumps(data), status, headers, tag)


def bytes_answer(
    body: bytes, status: int = 200, headers: Mapping[str, str] | None = None, tag: str = ""
) -> web.Response:
    """An answer whose JSON is ready."""
    sent = {"Content-Type": "application/json; charset=utf-8", **(headers or {})}
    if tag:
        sent["ETag"] = f'"{tag}-{hashlib.blake2b(body, digest_size=8).hexdigest()}"'
    return web.Response(body=body, status=status, headers=sent)


def item_answer(kind: Kind, record: Document, view: View, status: int = 200) -> web.Response:
    """A record that was written."""
    answer = json_answer(kind.represent(kind, record, view), status, tag=str(record["version"]))
    if status == 201:
        answer.headers["Location"] = kind.rest_url(view.site, record["_id"])
    return answer


def read_answer(request: web.Request, body: bytes, version: int) -> web.Response:
    """A record that was read; 304 if the client has it."""
    answer = bytes_answer(body, tag=str(version))
    if answer.headers["ETag"] in request.headers.get("If-None-Match", ""):
        return web.Response(status=304, headers={"ETag": answer.headers["ETag"]})
    return answer


def wanted_versions(request: web.Request) -> frozenset[int] | None:
    """The versions that an If-Match header allows; None for any."""
    header = request.headers.get("If-Match", "*")
    if header.strip() == "*":
        return None
    return frozenset(int(found) for found in re.findall(r'"([0-9]{1,18})-[0-9a-f]+"', header))


def list_answer(
    request: web.Request, kind: Kind, total: int, items: list[bytes], query: Mapping[str, Any], view: View
) -> web.Response:
    """A page of a list, made of records that are rendered already."""
    number, pages = query["page"], math.ceil(total / query["per_page"])
    links = {"next": number + 1 if number < pages else 0, "prev": number - 1 if number > 1 else 0}
    urls = {name: page_url(request, kind, view, to) for name, to in links.items() if to}
    body: Document = {kind.plural: [orjson.Fragment(item) for item in items]}
    body["rest_url"] = page_url(request, kind, view, number)
    body |= {f"{long}_rest_url": urls[name] for name, long in LONG.items() if name in urls}
    body |= {"total": total, "total_pages": pages}
    headers = {"X-TEC-Total": str(total), "X-TEC-TotalPages": str(pages)}
    if urls:
        headers["Link"] = ", ".join(f'<{url}>; rel="{name}"' for name, url in urls.items())
    return json_answer(body, headers=headers)


LONG = {"next": "next", "prev": "previous"}


def page_url(request: web.Request, kind: Kind, view: View, number: int) -> str:
    """The address of a page of this list, with every filter of the request."""
    kept = [(name, value) for name, value in query_pairs(request) if name not in ("page", "password")]
    pairs = [*kept, ("page", str(number))]
    return f"{view.site.api}/{kind.plural}?{urlencode(pairs, quote_via=quote)}"
