"""Replaces the records of a database by loaded ones, while every service answers 503.

A marker in `meta` tells services to stop. When all of them must have noticed it, the loaded collections are
renamed. If this is interrupted, the marker stays until a restore has ended: the database may be a mixture.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime

import pymongo

from schemas.kinds.event_representation import LINKED
from schemas.values.dates import EPOCH
from service.backup.contents import WEBHOOKS, Header
from service.backup.loading import drop_loaded
from service.changes.change import REMOVED_TERMS
from service.changes.feed import CHECKPOINT
from service.changes.log import CLOCK_ERROR
from service.changes.log_rows import LOG, begin_log
from service.changes.restores import FRESH_SECONDS, MARKER
from service.commands.migrating import StepProgress
from service.migrations import FORM, prepare
from service.migrations.recount import set_checkpoint, snapshot_time
from service.mongo.client import Database, utc
from service.mongo.indexes import INDEX_BUILD_SECONDS
from service.mongo.instance import INSTANCE
from service.webhooks.subscriptions import HEALTHY

SETTLE_SECONDS = FRESH_SECONDS + 4.0
"""From the marker to the first change: services notice it, and complete what they have begun."""
COUNTERS = "counters"


async def is_marked(database: Database) -> bool:
    return await database["meta"].find_one({"_id": MARKER}) is not None


async def mark(database: Database) -> None:
    """Store the marker, and wait until every process must have noticed it. A database that was never set up
    has no processes to wait for: those that start now look for the marker first."""
    is_used = await database["meta"].find_one({"_id": "form"})
    marker = {"$setOnInsert": {"since_utc": datetime.now(UTC)}}
    await database["meta"].update_one({"_id": MARKER}, marker, upsert=True)
    if is_used:
        await asyncio.sleep(SETTLE_SECONDS)


async def unmark(database: Database) -> None:
    await database["meta"].delete_one({"_id": MARKER})


async def switch(database: Database, prefix: str, header: Header, names: Iterable[str]) -> None:
    """Replace all records. Every step can be repeated after another load."""
    with pymongo.timeout(INDEX_BUILD_SECONDS):
        await raise_counters(database, prefix)
        for name in (*names, LOG):
            if name != COUNTERS:
                await database[prefix + name].rename(name, dropTarget=True)
        await database["meta"].replace_one(INSTANCE, header.instance, upsert=True)
        await database["meta"].replace_one({"_id": "form"}, {"number": header.form}, upsert=True)
        if header.form == FORM:
            await set_checkpoint(database, await snapshot_time(database), await begin_log(database))
        await prepare(database, StepProgress().show)
        await enqueue_jobs(database, header)
        await continue_webhooks(database)
        await drop_loaded(database)


async def raise_counters(database: Database, prefix: str) -> None:
    """Ids that either database has given are not given again."""
    async for counter in database[prefix + COUNTERS].find({"n": {"$type": "number"}}):
        raised = {"$max": {"n": counter["n"]}, "$setOnInsert": {"imported": counter.get("imported", [])}}
        await database[COUNTERS].update_one({"_id": counter["_id"]}, raised, upsert=True)


async def enqueue_jobs(database: Database, header: Header) -> None:
    """Have the copies of records compared that were changed shortly before the dump: processes that had just
    stored an event with an outdated copy would have updated it later."""
    since = {"$gte": utc(header.logged_until) - CLOCK_ERROR}
    for kind in LINKED.values():
        changed = [
            row["_id"] async for row in database[kind.plural].find({"modified_utc": since}, {"_id": 1})
        ]
        gone = database[REMOVED_TERMS].find({"kind": kind.plural, "at": since}, {"_id": 1})
        for id in [*changed, *[row["_id"] async for row in gone]]:
            await database["fanout_jobs"].replace_one(
                {"_id": f"{kind.name}:{id}"}, {"at": EPOCH}, upsert=True
            )


async def continue_webhooks(database: Database) -> None:
    """The change log has begun anew: send what changes from now on."""
    log = await database["meta"].find_one({"_id": CHECKPOINT}) or {}
    now = {"since": f"{log['log']}-{log['number']}", "holder": None, "held_until": EPOCH}
    await database[WEBHOOKS].update_many({}, {"$set": now})
    healthy = {**HEALTHY, "next_attempt": EPOCH}  # of those that were failing there is nothing left to send
    await database[WEBHOOKS].update_many({"state": "active"}, {"$set": healthy})
