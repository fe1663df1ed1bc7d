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
from handlers.ports import Page
from schemas.event import EVENT
from schemas.event_view import blanked, is_locked
from schemas.kind import Document, Kind, View


def json_answer(
    data: Any, status: int = 200, headers: Mapping[str, str] | None = None, tag: str = ""
) -> web.Response:
    body = orjson.dumps(data)
    answer = web.Response(body=body, status=status, headers=headers, content_type="application/json")
    answer.charset = "utf-8"
    if tag:
        answer.headers["ETag"] = f'"{tag}-{hashlib.blake2b(body, digest_size=8).hexdigest()}"'
    return answer


def item_answer(
    request: web.Request, kind: Kind, record: Document, view: View, status: int = 200, *, full: bool = False
) -> web.Response:
    """One record. On a GET it comes with its schema.org description, or as 304 if the client has it."""
    shown = kind.represent(kind, record, view)
    if full and kind.json_ld:
        shown["json_ld"] = kind.json_ld(kind, record, view)
    answer = json_answer(shown, status, tag=str(record["version"]))
    if status == 201:
        answer.headers["Location"] = kind.rest_url(view.site, record["_id"])
    if full and answer.headers["ETag"] in request.headers.get("If-None-Match", ""):
        return web.Response(status=304, headers={"ETag": answer.headers["ETag"]})
    return answer


def wanted_versions(request: web.Request) -> frozenset[int] | None:
    """The versions that an If-Match header allows; None for any."""
    header = request.headers.get("If-Match", "*")
    if header.strip() == "*":
        return None
    return frozenset(int(found) for found in re.findall(r'"([0-9]{1,18})-[0-9a-f]+"', header))


def list_answer(
    request: web.Request, kind: Kind, page: Page, query: Mapping[str, Any], view: View
) -> web.Response:
    number, pages = query["page"], math.ceil(page.total / query["per_page"])
    links = {"next": number + 1 if number < pages else 0, "prev": number - 1 if number > 1 else 0}
    urls = {name: page_url(request, kind, view, to) for name, to in links.items() if to}
    body: Document = {kind.plural: [shown_in_list(kind, record, view) for record in page.records]}
    body["rest_url"] = page_url(request, kind, view, number)
    body |= {f"{long}_rest_url": urls[name] for name, long in LONG.items() if name in urls}
    body |= {"total": page.total, "total_pages": pages}
    headers = {"X-TEC-Total": str(page.total), "X-TEC-TotalPages": str(pages)}
    if urls:
        headers["Link"] = ", ".join(f'<{url}>; rel="{name}"' for name, url in urls.items())
    return json_answer(body, headers=headers)


LONG = {"next": "next", "prev": "previous"}


def shown_in_list(kind: Kind, record: Document, view: View) -> Document:
    locked = kind is EVENT and is_locked(record) and not view.caller.unlocks
    return kind.represent(kind, blanked(record, view.site) if locked else record, view)


def page_url(request: web.Request, kind: Kind, view: View, number: int) -> str:
    """The address of a page of this list, with every filter of the request."""
    kept = [(name, value) for name, value in query_pairs(request) if name not in ("page", "password")]
    pairs = [*kept, ("page", str(number))]
    return f"{view.site.api}/{kind.plural}?{urlencode(pairs, quote_via=quote)}"
