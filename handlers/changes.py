"""Handlers of the change feed: changes since a token, as one response or as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

from aiohttp import web

from handlers.records import CALLER, Caches
from handlers.requests import query_values
from handlers.responses import static_response, to_json
from handlers.responses.streamed import StreamedResponse
from handlers.store_protocol import Store
from schemas.changes import ChangesInput, kinds_of
from schemas.errors import Problem, Problems, Unavailable
from schemas.kind import Document, RenderContext, load_valid
from schemas.results import ChangesPage, VisibleChange
from schemas.site import Site
from schemas.values.dates import show

HEARTBEAT_SECONDS = 15.0
"""Proxies close connections on which nothing is sent for long."""
RETRY_SECONDS = 1.0
"""Pause while MongoDB is not available."""
MAX_STREAM_SECONDS = 600.0
"""Streams end, and clients connect again: with a revoked token they cannot."""
EVENT_STREAM = "text/event-stream"
EVENT_STREAM_HEADERS = {
    "Content-Type": EVENT_STREAM,
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # nginx would hold events back
}
ReadChanges = tuple[ChangesPage, list[tuple[VisibleChange, bytes]]]


class ChangesHandlers:
    """The handlers under one path prefix."""

    def __init__(self, store: Store, site: Site, caches: Caches) -> None:
        self.store, self.site, self.fragments = store, site, caches.fragments

    async def index(self, request: web.Request) -> web.StreamResponse:
        """The changes since a token."""
        context = RenderContext(self.site, request[CALLER])
        query, problems = load_valid(ChangesInput, query_values(request, ChangesInput), self.site)
        page, rows = await self.read(query, problems, context)
        rest = to_json({"next": page.next, "has_more": page.has_more})
        body = b'{"changes":[' + b",".join(body for _, body in rows) + b"]," + rest[1:]
        return static_response(body).respond_to(request)

    async def stream(self, request: web.Request) -> web.StreamResponse:
        """The changes since a token, and all further ones, as server-sent events."""
        context = RenderContext(self.site, request[CALLER])
        query, problems = load_valid(ChangesInput, query_values(request, ChangesInput), self.site)
        query["since"] = request.headers.get("Last-Event-ID") or query.get("since")
        position, first = self.store.feed.position, await self.read(query, problems, context)
        events = self.events(first, position, query, context)
        return StreamedResponse(events, EVENT_STREAM_HEADERS, is_endless=True)

    async def events(
        self, read: ReadChanges, position: int, query: Document, context: RenderContext
    ) -> AsyncGenerator[bytes]:
        """Server-sent events. Each sets the ID from which a client continues after an interruption."""
        ends = monotonic() + MAX_STREAM_SECONDS
        while True:
            page, changes = read
            yield b"".join(event(change.token, body) for change, body in changes) + event(page.next)
            if monotonic() > ends:
                return
            if not page.has_more:
                with suppress(TimeoutError):  # nothing has changed: a heartbeat
                    await asyncio.wait_for(self.store.wait_for_changes(position), HEARTBEAT_SECONDS)
            reached = self.store.feed.position
            try:
                read = await self.read(query | {"since": page.next}, Problems(), context)
                position = reached
            except Unavailable:  # a browser that is answered 503 would not connect again
                read = (page, [])
                await asyncio.sleep(RETRY_SECONDS)
            except Problem:
                return  # the client connects again, and is told what is wrong

    async def read(self, query: Document, problems: Problems, context: RenderContext) -> ReadChanges:
        """Changes, each with its representation."""
        page = await self.store.changes(kinds_of(query), query, context.caller, problems)
        return page, await self.render(page.changes, context)

    async def render(
        self, changes: Sequence[VisibleChange], context: RenderContext
    ) -> list[tuple[VisibleChange, bytes]]:
        """The changes with their representations. A record that was hidden since they were read is left out:
        a later change tells so."""
        records: dict[tuple[str, int], bytes] = {}
        for kind in {change.kind.plural: change.kind for change in changes}.values():
            heads = {change.id: change.head for change in changes if change.kind is kind and change.head}
            shown = await self.fragments.render_list(kind, list(heads.values()), context)
            records |= {(kind.plural, state.id): body for state, body in shown}
        rendered = []
        for change in changes:
            record = records.get((change.kind.plural, change.id)) if change.head else b"null"
            if record is not None:
                rendered.append((change, represent(change, record)))
        return rendered


def event(token: str, data: bytes = b"") -> bytes:
    """A server-sent event; without data it only sets the ID, and keeps the connection alive."""
    return b"id: " + token.encode() + (b"\ndata: " + data if data else b"") + b"\n\n"


def represent(change: VisibleChange, record: bytes) -> bytes:
    told: dict[str, Any] = {
        "kind": change.kind.plural,
        "id": change.id,
        "action": change.action,
        "changed_utc": show(change.at),
    }
    return to_json(told)[:-1] + b',"record":' + record + b"}"
