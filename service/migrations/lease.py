"""Leases: one process at a time does a job; if it dies, its lease expires, and another one does the job."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from uuid import uuid4

import pymongo
from pymongo.errors import DuplicateKeyError, PyMongoError

from schemas.values.dates import EPOCH
from service.background import background_task
from service.failures import brief
from service.mongo.client import Database, Row

LEASE_SECONDS, RENEW_SECONDS, WAIT_SECONDS = 30, 10, 0.5
RELEASE_SECONDS = 1.0
"""How long a process that gives up a job waits for MongoDB to take the lease back."""

log = logging.getLogger("kalends.migrations")


@asynccontextmanager
async def hold_lease(database: Database, job: str) -> AsyncIterator[Callable[[], Awaitable[bool]]]:
    """Wait for the lease of a job, and hold it. Yields a function that renews it, or returns False if another
    process has it now because this one was stopped for long. Times are those of the server."""
    holder, is_waiting = uuid4().hex, False
    while not await _take(database, job, holder):
        if not is_waiting:
            log.info("another process is busy with the %s; waiting until it is done", job)
        is_waiting = True
        await asyncio.sleep(WAIT_SECONDS)
    held = {"_id": job, "holder": holder}
    try:
        async with background_task(_keep(database, job, holder)):
            yield partial(_renew, database, job, holder)
    # Whatever has failed, or if the process is stopped, the next holder should not wait until it expires.
    except (Exception, asyncio.CancelledError):
        with suppress(PyMongoError), pymongo.timeout(RELEASE_SECONDS):  # then it expires
            await database["meta"].delete_one(held)
        raise
    await database["meta"].delete_one(held)


async def _take(database: Database, job: str, holder: str) -> bool:
    """Take the lease unless another process has it."""
    with suppress(DuplicateKeyError):  # it is there
        await database["meta"].insert_one({"_id": job, "until": EPOCH})
    return await _hold(database, {"_id": job, "$expr": {"$lt": ["$until", "$$NOW"]}}, holder)


async def _renew(database: Database, job: str, holder: str) -> bool:
    """Renew the lease; return False if another process has taken it since, even if that one has ended."""
    return await _hold(database, {"_id": job, "holder": holder}, holder)


async def _hold(database: Database, query: Row, holder: str) -> bool:
    until = {"$dateAdd": {"startDate": "$$NOW", "unit": "second", "amount": LEASE_SECONDS}}
    done = await database["meta"].update_one(query, [{"$set": {"holder": holder, "until": until}}])
    return bool(done.matched_count)


async def _keep(database: Database, job: str, holder: str) -> None:
    while True:
        await asyncio.sleep(RENEW_SECONDS)
        try:
            if not await _renew(database, job, holder):
                log.error("another process has taken over the %s; this one was too slow", job)
        except PyMongoError as error:  # it expires later than the next attempt
            log.warning("the lease of the %s could not be renewed; retrying: %s", job, brief(error))
