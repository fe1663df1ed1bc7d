"""Runs background maintenance, and starts the store first if MongoDB was not usable before."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date

from pymongo.errors import ConnectionFailure, PyMongoError

from schemas.caller import Caller
from schemas.errors import Problem
from service.background import background_task
from service.changes.restores import RestoreUnderWay
from service.failures import Failures, brief
from service.migrations import DatabaseTooNew
from service.store import Store

log = logging.getLogger("kalends.store")
MAINTENANCE_SECONDS = 5.0
"""Pause between two runs."""
RETRY_SECONDS = 1.0
"""Pause between attempts to use a database that was not usable at startup."""
QUICK_START_SECONDS = 5.0
"""How long requests wait in the socket's backlog for the database to be prepared; then they get 503 until it
is. An upgrade may take hours, in which an orchestrator would kill a process whose liveness it cannot ask."""


class Maintenance:
    """Runs maintenance forever."""

    def __init__(self, store: Store, caller: Caller) -> None:
        self._store, self._caller = store, caller
        self._warmed: date | None = None
        self._starting = Failures(log, "preparing the database")
        self._running = Failures(log, "background maintenance")
        self._first: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def starting(self) -> AsyncIterator[None]:
        """Begin to start the store, and wait for that, but not long: `run` waits for the rest. What it fails
        with is raised if it does so in time."""
        first = self._first = asyncio.create_task(self._try_start())
        try:
            await asyncio.wait({first}, timeout=QUICK_START_SECONDS)
            if first.done():
                first.result()
            yield
        finally:
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)

    async def _start(self) -> None:
        """Wait for the first attempt to start the store, or make another one."""
        first, self._first = self._first, None
        await (first or self._try_start())

    async def _try_start(self) -> None:
        """Start the store if MongoDB is usable. `announcing.py` warns if it cannot be reached."""
        try:
            await self._store.start()
            self._starting.succeeded()
        except ConnectionFailure as error:
            log.debug("MongoDB cannot be reached yet: %s", brief(error))
        except (PyMongoError, DatabaseTooNew, RestoreUnderWay) as error:
            self._starting.failed(error)

    async def run(self) -> None:
        while True:
            try:
                if not self._store.started:
                    await self._start()
                if self._store.started:
                    await self._maintain()
            except Exception:  # a bug in one run must not stop later ones
                log.exception("background maintenance failed; retrying")
            await asyncio.sleep(MAINTENANCE_SECONDS if self._store.started else RETRY_SECONDS)

    async def _warm(self) -> None:
        """Count the default list of events at the start, and once a day in case its histogram was lost."""
        today = self._store.site.now().date()
        if today != self._warmed:
            self._warmed = today  # even if it fails: the list may be too long to be counted in time
            await self._store.lists.warm(self._caller)

    async def _maintain(self) -> None:
        try:
            await self._store.maintain()
            await self._warm()
            self._running.succeeded()
        except (PyMongoError, Problem) as error:
            self._running.failed(error)


@asynccontextmanager
async def maintained(store: Store, caller: Caller) -> AsyncIterator[None]:
    """Start the store if MongoDB is usable, and run background maintenance while open. Lists are warmed for
    this caller."""
    maintenance = Maintenance(store, caller)
    async with maintenance.starting(), background_task(maintenance.run()):
        yield
