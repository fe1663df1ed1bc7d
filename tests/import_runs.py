"""Runs of `kalends import` in the process of the test, and a site of the reference service to import from."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from config import Settings
from schemas.site import Site
from service.imports.command import import_source
from service.imports.item import SourceError
from service.imports.options import ImportOptions
from service.store import Store, open_store

ROOT = "/wp-json/tribe/events/v1"
PER_PAGE = 2
"""Records on a page, whatever the client asks for: so that a short list has several."""


@dataclass
class Run:
    """What a run has printed, and its exit status."""

    status: int
    summary: dict[str, tuple[int, ...]]
    """Plural of a kind -> new, changed, same, refused."""
    said: list[str]


class Imports:
    """Imports into the database of the test."""

    def __init__(self, uri: str, store: Store, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.store, self.directory, self.capsys = store, directory, capsys
        self.settings = Settings(mongodb_uri=uri, database=store.database.name)

    async def text(self, name: str, text: str, **options: Any) -> Run:
        """Import a file with this content; lines may end with \\n where the format wants \\r\\n."""
        path = self.directory / name
        path.write_text(text, encoding="utf-8", newline="")
        return await self.run(str(path), **options)

    async def run(self, source: str, **options: Any) -> Run:
        window = {"since": date(2026, 1, 1), "until": date(2029, 1, 1)}
        settings = replace(self.settings, timezone=options.pop("timezone", "UTC"))
        asked = replace(ImportOptions(source, **window), **options)
        self.capsys.readouterr()
        status, failure = 1, []
        try:
            status = await import_source(settings, asked)
        except SourceError as error:
            failure = [str(error)]
        printed = self.capsys.readouterr()
        rows = [line.partition(": ") for line in printed.out.splitlines() if ": " in line]
        summary = {
            kind: tuple(int(part.split()[0]) for part in counts.split(", ")) for kind, _, counts in rows
        }
        said = [line for line in printed.err.splitlines() if " database " not in line]
        return Run(status, summary, said + failure)

    async def records(self, plural: str) -> list[dict[str, Any]]:
        return await self.store.database[plural].find().sort("_id", 1).to_list(None)


@asynccontextmanager
async def copied(imports: Imports, uri: str) -> AsyncIterator[Imports]:
    """Imports into another database, which is empty at first."""
    name = f"{imports.store.database.name}_copy"
    await imports.store.client.drop_database(name)
    async with open_store(uri, name, Site()) as other:
        yield Imports(uri, other, imports.directory, imports.capsys)


@dataclass
class ReferenceSite:
    """Plays a site of the reference service: its lists, with pages, and drafts for those who log in."""

    records: dict[str, list[dict[str, Any]]]
    user: str = ""
    prefix: str = ""
    """The path of the site, before that of the interface."""
    requests: list[str] = field(default_factory=list)
    answer: Callable[[web.Request], Awaitable[web.StreamResponse | None]] | None = None
    """Answers a request in its own way, or returns None."""

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/{path:.*}", self.handle)
        return app

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request.path_qs)
        if self.answer and (other := await self.answer(request)):
            return other
        path = request.path.removeprefix(self.prefix)
        if path == "/":
            return web.Response(text="<!DOCTYPE html><title>Calendar</title>", content_type="text/html")
        if path.rstrip("/") == ROOT:
            return web.json_response({"namespace": "tribe/events/v1", "routes": {}})
        plural = path.removeprefix(f"{ROOT}/")
        if plural not in self.records:
            return web.json_response({"code": "rest_no_route", "message": "No route."}, status=404)
        return self.list(request, plural)

    def list(self, request: web.Request, plural: str) -> web.Response:
        found = [one for one in self.records[plural] if self.shows(request, one)]
        if plural == "events" and not {"start_date", "end_date"} <= request.query.keys():
            found = []
        page = int(request.query["page"])
        pages = -(-len(found) // PER_PAGE)
        if page > max(pages, 1):
            return web.json_response({"code": "event-archive-page-not-found"}, status=404)
        shown = found[(page - 1) * PER_PAGE : page * PER_PAGE]
        return web.json_response({plural: shown, "total": len(found), "total_pages": pages})

    def shows(self, request: web.Request, record: dict[str, Any]) -> bool:
        sent = request.headers.get("Authorization", "").removeprefix("Basic ")
        is_known = base64.b64decode(sent).decode() == self.user != ""
        is_public = not isinstance(record, dict) or record.get("status", "publish") == "publish"
        return is_public or is_known
