"""Aborts the transactions of crashed processes. MongoDB itself keeps them, and everything that they have
locked, for more than a minute; meanwhile no other process could write to the same documents."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from pymongo.errors import OperationFailure, PyMongoError
from pymongo.read_concern import ReadConcern

from service.mongo.client import APP_NAME, Client, Row

log = logging.getLogger("kalends.store")
ABANDONED_AFTER_SECONDS = 3.0
"""Between two commands of a transaction a process pauses for milliseconds. If a transaction of a live process
is aborted nevertheless, `in_transaction` repeats it."""


async def keep_aborting(client: Client) -> None:
    """Abort abandoned transactions again and again: what they have locked is needed now."""
    while True:
        with suppress(PyMongoError):  # tried again
            await abort_abandoned_transactions(client)
        await asyncio.sleep(ABANDONED_AFTER_SECONDS / 3)


async def abort_abandoned_transactions(client: Client) -> None:
    """Abort transactions that have sent no command for some seconds: those of this user, of any process."""
    idle = {"$gt": int(ABANDONED_AFTER_SECONDS * 1_000_000)}
    wanted: Row = {"type": "idleSession", "appName": APP_NAME, "transaction.timeInactiveMicros": idle}
    stages: list[Row] = [
        {"$currentOp": {"idleSessions": True}},
        {"$match": wanted},
        {"$project": {"lsid.id": 1}},
    ]
    admin = client.get_database("admin", read_concern=ReadConcern("local"))  # what $currentOp requires
    try:
        if sessions := [row["lsid"] async for row in admin.aggregate(stages)]:
            await admin.command({"killSessions": sessions})
            log.warning("aborted %d transactions that crashed processes had left", len(sessions))
    except OperationFailure as error:  # hosted MongoDBs may refuse it: there MongoDB's own limit applies
        log.debug("cannot look for transactions of crashed processes: %s", error)
