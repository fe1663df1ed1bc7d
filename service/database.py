"""Locate and open the database: on the configured MongoDB, or on the embedded one."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from config import Settings
from service.embedded import EmbeddedError, choose_directory, embedded_mongod, has_data, running_uri
from service.mongo.client import Database, close_client, connect
from service.site import site_of
from service.store import Store, open_store


@dataclass(frozen=True)
class Location:
    """The URI of a MongoDB and the name of a database; printed without credentials."""

    uri: str
    database: str
    data_dir: Path | None = None
    """The data directory of the embedded MongoDB; None for any other MongoDB."""

    @property
    def hosts(self) -> str:
        return unquote(self.uri.partition("://")[2].partition("/")[0].rpartition("@")[2])

    def __str__(self) -> str:
        mongodb = f"the embedded MongoDB in {self.data_dir}" if self.data_dir else f"MongoDB at {self.hosts}"
        return f"database {self.database} of {mongodb}"


class Opened(NamedTuple):
    """An open store and the location of its data."""

    store: Store
    location: Location


@asynccontextmanager
async def located(
    settings: Settings, *, shared: bool = True, must_exist: bool = False
) -> AsyncIterator[Location]:
    """The configured MongoDB, the embedded one of a running service if `shared`, or a new embedded one. With
    `must_exist`, a directory without data raises EmbeddedError."""
    if settings.mongodb_uri:
        yield Location(settings.mongodb_uri, settings.database)
        return
    chosen = choose_directory(settings.data_dir)
    if chosen.notice:
        print(f"kalends: {chosen.notice}", file=sys.stderr)
    if uri := running_uri(chosen.path) if shared else None:
        yield Location(uri, settings.database, chosen.path)
        return
    if must_exist and not has_data(chosen.path):
        raise EmbeddedError(f"there is no data in {chosen.path}: set KALENDS_DATA_DIR or KALENDS_MONGODB_URI")
    async with embedded_mongod(chosen.path) as uri:
        yield Location(uri, settings.database, chosen.path)


@asynccontextmanager
async def connected(location: Location) -> AsyncIterator[Database]:
    """The database at a location, without a store."""
    client = connect(location.uri)
    try:
        yield client[location.database]
    finally:
        close_client(client)


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Opened]:
    """Open the configured store, whether or not a service is running on it."""
    async with (
        located(settings) as location,
        open_store(location.uri, location.database, site_of(settings)) as store,
    ):
        yield Opened(store, location)
