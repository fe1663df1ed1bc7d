"""Counts the events of all linked records anew: in a database without counters, after a restore, and if the
change feed has lost changes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pymongo
from bson import Timestamp
from pymongo import UpdateOne

from schemas.event import EVENT
from schemas.event_representation import LINKED
from service.migrations.lease import hold_lease
from service.store.change_feed import CHECKPOINT
from service.store.log_rows import begin_log
from service.store.mongo.client import Database, read_clock

RANGE = 50_000
"""Ids of linked records counted by one command."""
RECOUNT_SECONDS = 6 * 3600
"""Time limit of the whole count."""
Report = Callable[[str, int, int], None]
"""(step, number done, number in all) -> shows the progress."""


async def recount_if_needed(database: Database, report: Report) -> None:
    """Count all events if there is no usable checkpoint; one process does so, and the others wait."""
    if not await _has_checkpoint(database):
        async with hold_lease(database, "recount"):
            if not await _has_checkpoint(database):
                with pymongo.timeout(RECOUNT_SECONDS):
                    await recount(database, report)


async def recover(database: Database, report: Report, repair: Callable[[], Awaitable[None]]) -> None:
    """Repair the change log and count all events, since the changes after the checkpoint are lost. If several
    processes notice that, the first one to get the lease does so; the others find another checkpoint."""
    lost = await database["meta"].find_one({"_id": CHECKPOINT})
    async with hold_lease(database, "recount"):
        if await database["meta"].find_one({"_id": CHECKPOINT}) == lost:
            with pymongo.timeout(RECOUNT_SECONDS):
                await recount(database, report, repair)


async def _has_checkpoint(database: Database) -> bool:
    """Whether there is a checkpoint for this collection of events: a restored one has another UUID."""
    found = await database["meta"].find_one({"_id": CHECKPOINT})
    return bool(found and found["events_uuid"] == await _events_uuid(database))


async def _events_uuid(database: Database) -> Any:
    async for found in await database.list_collections(filter={"name": EVENT.plural}):
        return found["info"]["uuid"]
    return None


async def recount(
    database: Database, report: Report, repair: Callable[[], Awaitable[None]] | None = None
) -> None:
    """Count all events as of one point in time, and let the change feed continue from there."""
    at = (await asyncio.to_thread(read_clock, database.delegate)).time
    if repair:  # what changes from that point in time on is read from the change feed
        await repair()
    log: dict[str, Any] = {}
    if not await _has_checkpoint(database):  # times of another replica set mean nothing here
        log = await begin_log(database)
        for kind in LINKED.values():
            await database[kind.plural].update_many({}, {"$set": {"events.as_of": None}})
    last = {
        field: await database[kind.plural].find_one({}, {"_id": 1}, sort=[("_id", -1)])
        for field, kind in LINKED.items()
    }
    ranges = [(field, low) for field, one in last.items() if one for low in range(0, one["_id"] + 1, RANGE)]
    done, total = 0, sum([await database[one.plural].estimated_document_count() for one in LINKED.values()])
    for field, low in ranges:
        done += await _recount_range(database, field, low, at)
        report("counting the events of venues, organizers, categories and tags", done, total)
    checkpoint = {"at": at, "events_uuid": await _events_uuid(database), **log}
    await database["meta"].update_one({"_id": CHECKPOINT}, {"$set": checkpoint}, upsert=True)


async def _recount_range(database: Database, field: str, low: int, at: Timestamp) -> int:
    """Count the events of linked records with ids in a range; return the number of these records."""
    ids = {"$gte": low, "$lt": low + RANGE}
    kind = LINKED[field]
    said = await database.command(
        "aggregate",
        EVENT.plural,
        pipeline=_counting(field, ids, has_ends=kind.is_post),
        cursor={"batchSize": RANGE + 1},
        readConcern={"level": "snapshot", "atClusterTime": at},
    )
    counted = {row.pop("_id"): row for row in said["cursor"]["firstBatch"]}
    none = {"publish": 0, "publish_end": None, "live_end": None}
    uncounted = {"events.as_of": {"$not": {"$gt": at}}}
    updates = [
        UpdateOne(
            {"_id": row["_id"], **uncounted},
            {"$set": {"events": none | counted.get(row["_id"], {}) | {"as_of": at}}},
        )
        async for row in database[kind.plural].find({"_id": ids}, {"_id": 1})
    ]
    if updates:
        await database[kind.plural].bulk_write(updates, ordered=False)
    return len(updates)


def _counting(field: str, ids: dict[str, int], *, has_ends: bool) -> list[dict[str, Any]]:
    is_public = {"$and": [{"$eq": ["$status", "publish"]}, {"$ne": ["$locked", True]}]}
    is_live = {"$ne": ["$status", "trash"]}
    ends = {
        "publish_end": {"$max": {"$cond": [is_public, "$end_utc", None]}},
        "live_end": {"$max": {"$cond": [is_live, "$end_utc", None]}},
    }
    count = {"publish": {"$sum": {"$cond": [is_public, 1, 0]}}}
    return [
        {"$match": {f"{field}._id": ids}},
        {"$unwind": f"${field}"},
        {"$match": {f"{field}._id": ids}},
        {"$group": {"_id": f"${field}._id", **count, **(ends if has_ends else {})}},
    ]
