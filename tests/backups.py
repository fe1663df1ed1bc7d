"""Dumps and restores in the process of the test, and everything that a service shows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from config import Settings
from schemas import KINDS
from schemas.formats import formats_of
from schemas.site import Site
from service.backup.dumping import DumpOptions, dump_database
from service.backup.restore_command import RestoreOptions, restore_database
from service.store import Store, open_store
from tests.conftest import Api, Served
from tests.test_export import fill

Shown = dict[str, tuple[int, str | None, str]]
"""Path -> status, ETag and body."""
ANY_STATUS = "status=publish,draft,pending,private,future,trash&start_date=2000-01-01&end_date=2040-01-01"
PAGES = ("//", "//events/list/", "//events/month/2027-06/", "//sitemap.xml", "//events/map/")


@dataclass
class Backups:
    """Dumps one database of a MongoDB, and restores into another one."""

    uri: str
    source: str
    directory: Path
    capsys: pytest.CaptureFixture[str]
    open: Callable[[Store], Awaitable[Api]]

    @property
    def target(self) -> str:
        return f"{self.source}_restored"

    def settings(self, name: str) -> Settings:
        return replace(Settings(), mongodb_uri=self.uri, database=name)

    async def dump(self, name: str = "all.dump", **options: Any) -> Path:
        path = self.directory / name
        await dump_database(self.settings(self.source), DumpOptions(str(path), **options))
        return path

    async def restore(self, path: Path, *, into: str = "", replace: bool = False) -> str:
        """What the command has printed."""
        self.capsys.readouterr()
        options = RestoreOptions(str(path), replace)
        await restore_database(self.settings(into or self.target), options)
        return self.capsys.readouterr().err

    @asynccontextmanager
    async def restored(self, path: Path) -> AsyncIterator[Api]:
        """A service on a new database with what a dump contains."""
        await self.restore(path)
        async with open_store(self.uri, self.target, Site()) as store:
            yield await self.open(store)


@asynccontextmanager
async def backups_of(
    store: Store, uri: str, directory: Path, capsys: pytest.CaptureFixture[str], aiohttp_client: Any
) -> AsyncIterator[Backups]:
    async def open_api(other: Store) -> Api:
        return Api(await aiohttp_client(Served(Settings(auth="token"), other)), other)

    made = Backups(uri, store.database.name, directory, capsys, open_api)
    await store.client.drop_database(made.target)
    yield made
    await store.client.drop_database(made.target)


async def fill_all(api: Api) -> None:
    """Records of all kinds in all states, some of which were changed and removed."""
    await fill(api)
    gone = await api.made("tags", name="Gone")
    await api.delete(f"/tags/{gone['id']}")
    venue = await api.made("venues", venue="Barn")
    event = await api.event("Moved", venue=[venue["id"]], categories=["Jazz"], featured=True)
    await api.patch(f"/venues/{venue['id']}", {"venue": "Big Barn"})
    await api.patch(f"/events/{event['id']}", {"title": "Moved again"})


async def everything_shown(api: Api) -> Shown:
    """All lists and records in all formats, and some pages."""
    found: Shown = {}

    async def show(path: str) -> Any:
        status, body = await api.get(path)
        found[path] = (status, api.headers.get("ETag"), api.text)
        return body

    for kind in KINDS:
        query = ANY_STATUS if kind.name == "event" else "hide_empty=0" if not kind.is_post else "per_page=50"
        await show(f"/{kind.plural}")
        endings = [f".{ending}" for ending in formats_of(kind)]
        rows = await api.store.database[kind.plural].find({}, {"slug": 1}).to_list(None)
        for path in [f"/{kind.plural}{ending}?{query}" for ending in ["", *endings]]:
            await show(path)
        for row in rows:
            for ending in ["", *endings]:
                await show(f"/{kind.plural}/{row['_id']}{ending}")
            await show(f"/{kind.plural}/by-slug/{row['slug']}")
            await show(f"//{kind.page}/{row['slug']}/")
    for path in PAGES:
        await show(path)
    return found
