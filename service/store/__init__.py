"""The store: what handlers use to read and write records. Only this package uses Motor."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import date
from typing import Any

import pymongo
from pymongo.errors import ConnectionFailure, PyMongoError

from schemas import KINDS
from schemas.caller import Caller
from schemas.errors import Problem, Problems
from schemas.kind import Kind
from schemas.site import Site
from service.background import background_task
from service.failures import Failures, brief
from service.store.lists.pages import Lists, Page
from service.store.mongo.client import Client, Database, connect
from service.store.mongo.indexes import create_indexes
from service.store.records.reading import NO_PROBLEMS
from service.store.records.updating import Changes
from service.store.tokens import Tokens

__all__ = ["Page", "Store", "open_store"]

log = logging.getLogger("kalends.store")
SWEEP = 5.0
"""Seconds between runs of background maintenance."""
RETRY = 1.0
"""Seconds between attempts to use a database that was not usable at startup."""


class Store(Changes):
    """Records of all kinds, their lists, and access tokens."""

    def __init__(self, client: Client, database: Database, site: Site) -> None:
        super().__init__(client, database, site)
        self.tokens = Tokens(database, self.ids)
        self.lists = Lists(database, site, self.feed, self.vocabulary)
        self.started = False
        self._starting = Failures(log, "preparing the database")
        self._maintenance = Failures(log, "background maintenance")
        self._warmed: date | None = None

    async def start(self) -> None:
        """Create indexes and bring the id counters up to date; idempotent."""
        with pymongo.timeout(3):  # fail fast: building indexes has a long timeout
            await self.database.command("ping")
        await create_indexes(self.database)
        await self.ids.catch_up()
        self.started = True

    async def page(
        self, kind: Kind, query: Mapping[str, Any], caller: Caller, problems: Problems = NO_PROBLEMS
    ) -> Page:
        if kind.embedded_fields:  # their lists filter and sort by usage counters
            await self.counts.catch_up()
        return await self.lists.page(kind, query, caller, problems)

    async def is_alive(self) -> bool:
        try:
            async with asyncio.timeout(2):
                await self.database.command("ping")
        except (PyMongoError, TimeoutError):
            return False
        return self.started

    async def maintain(self) -> None:
        """Background maintenance: publish what is due, finish work of crashed processes, read changes."""
        await self.publish_due()
        await self.fanout.resume_abandoned()
        await self.counts.maintain(self.site.now())
        await self.feed.keep_up()

    async def warm(self, stranger: Caller) -> None:
        """Count the default event list at the start, and once a day in case its histogram was lost."""
        today = self.site.now().date()
        if today != self._warmed:
            self._warmed = today  # even if warming fails: the list may be too long to be counted in time
            await self.lists.warm(stranger)

    async def try_start(self) -> None:
        """Start if MongoDB is usable. If it is unreachable, `service.announcing` tells the operator."""
        try:
            await self.start()
            self._starting.succeeded()
        except ConnectionFailure as error:
            log.debug("MongoDB cannot be reached yet: %s", brief(error))
        except PyMongoError as error:
            self._starting.failed(error)

    async def keep_maintained(self, stranger: Caller) -> None:
        """Run background maintenance forever; start the store first if MongoDB was not usable before."""
        while True:
            try:
                if not self.started:
                    await self.try_start()
                if self.started:
                    await self._maintain(stranger)
            except Exception:  # a bug in one run must not stop later ones
                log.exception("background maintenance failed; retrying")
            await asyncio.sleep(SWEEP if self.started else RETRY)

    async def _maintain(self, stranger: Caller) -> None:
        try:
            await self.maintain()
            await self.warm(stranger)
            self._maintenance.succeeded()
        except (PyMongoError, Problem) as error:
            self._maintenance.failed(error)

    async def close(self) -> None:
        """Wait up to a second for background tasks; what is left is persisted and resumed by maintenance."""
        if under_way := self._tasks | self.counts.tasks | self.tokens.tasks:
            await asyncio.wait(under_way, timeout=1)
        await self.feed.close()
        self.passwords.close()

    async def publish_due(self) -> None:
        due = {"status": "future", "date_utc": {"$lte": self.site.now()}}
        for kind in (kind for kind in KINDS if kind.is_post):
            async for record in self.database[kind.plural].find(due, {"_id": 1}):
                await self.publish(kind, record["_id"])


@asynccontextmanager
async def open_store(uri: str, name: str, site: Site, *, patient: bool = False) -> AsyncIterator[Store]:
    """Open a store; if `patient`, a database that is not usable yet is left to `keep_maintained`."""
    client = connect(uri)
    try:
        store = Store(client, client[name], site)
        await (store.try_start() if patient else store.start())
        try:
            yield store
        finally:
            await store.close()
    finally:
        client.close()


@asynccontextmanager
async def maintaining(store: Store, stranger: Caller) -> AsyncIterator[None]:
    """Run background maintenance while open; lists are warmed for `stranger`, an anonymous caller."""
    async with background_task(store.keep_maintained(stranger)):
        yield
