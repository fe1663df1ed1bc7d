"""Counts the events of all linked records anew: in a database without counters, after a restore, and if the
change feed has lost changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple

import pymongo
from bson import Timestamp
from pymongo import UpdateOne

from schemas.kind import Kind
from schemas.kinds.event import EVENT
from schemas.kinds.event_representation import LINKED
from service.changes.feed import CHECKPOINT
from service.changes.log_rows import begin_log
from service.migrations.lease import hold_lease
from service.mongo.client import Collection, Database, batches_by_id
from service.mongo.write_clock import read_clock

log = logging.getLogger("kalends.migrations")
BATCH = 50_000
"""Linked records counted by one command."""
RECOUNT_SECONDS = 6 * 3600
"""Time limit of the whole count."""
LOST = (
    "MongoDB's oplog does not reach back to the last change that was logged, so that all events are counted "
    "again; if other programs write much to this MongoDB, make the oplog larger"
)
Report = Callable[[str, int, int], None]
"""(step, number done, number in all) -> shows the progress."""
Repair = Callable[[], Awaitable[bool]]
"""Logs what may have changed since the checkpoint; returns False if the log must be begun anew."""


async def recount_if_needed(database: Database, report: Report) -> None:
    """Count all events if there is no usable checkpoint; one process does so, and the others wait."""
    if not await _has_checkpoint(database):
        async with hold_lease(database, "recount"):
            if not await _has_checkpoint(database):
                with pymongo.timeout(RECOUNT_SECONDS):
                    await recount(database, report)


async def recover(database: Database, report: Report, repair: Repair, lost_since: Timestamp) -> None:
    """Repair the change log and count all events, since the changes after the checkpoint are lost. If several
    processes notice that, the first one to get the lease does so; the others find another checkpoint."""
    async with hold_lease(database, "recount"):
        found = await database["meta"].find_one({"_id": CHECKPOINT})
        if found is None or found["at"] == lost_since:
            log.warning(LOST)
            with pymongo.timeout(RECOUNT_SECONDS):
                await recount(database, report, repair)


async def _has_checkpoint(database: Database) -> bool:
    """Whether there is a checkpoint for this collection of events: a restored one has another UUID."""
    found = await database["meta"].find_one({"_id": CHECKPOINT})
    return bool(found and found["events_uuid"] == await events_uuid(database))


async def events_uuid(database: Database) -> Any:
    async for found in await database.list_collections(filter={"name": EVENT.plural}):
        return found["info"]["uuid"]
    return None


async def recount(database: Database, report: Report, repair: Repair | None = None) -> None:
    """Count all events as of one point in time, and let the change feed continue from there."""
    at = await snapshot_time(database)
    has_checkpoint, log = await _has_checkpoint(database), dict[str, Any]()
    # What changes from that point in time on is read from the change feed.
    if not has_checkpoint or (repair and not await repair()):
        log = await begin_log(database)
        at = await snapshot_time(database)
    if not has_checkpoint:  # times of another replica set mean nothing here
        await forget_times(Counted(database, at))
    await count_events(Counted(database, at), report)
    await set_checkpoint(database, at, log)


async def set_checkpoint(database: Database, at: Timestamp, log: Mapping[str, Any]) -> None:
    """Let the change feed continue from a time up to which everything is counted."""
    checkpoint = {"at": at, "events_uuid": await events_uuid(database), **log}
    change = {"$set": checkpoint, "$setOnInsert": {"number": 0}}
    await database["meta"].update_one({"_id": CHECKPOINT}, change, upsert=True)


class Counted(NamedTuple):
    """What is counted: all events as of a time, or those in collections that nobody else uses."""

    database: Database
    at: Timestamp
    prefix: str = ""
    """The names of these collections begin with it."""

    def name(self, kind: Kind) -> str:
        return self.prefix + kind.plural

    def records(self, field: str) -> Collection:
        """The records that a field of events links to."""
        return self.database[self.name(LINKED[field])]

    @property
    def read_concern(self) -> dict[str, Any]:
        # MongoDB keeps a moment for five minutes only.
        return {"level": "majority"} if self.prefix else {"level": "snapshot", "atClusterTime": self.at}


async def forget_times(counted: Counted) -> None:
    """Forget up to which time the events of each record are counted."""
    for field in LINKED:
        await counted.records(field).update_many({}, {"$set": {"events.as_of": None}})


async def count_events(counted: Counted, report: Report) -> None:
    """Count the events of all linked records."""
    sizes = [await counted.records(field).estimated_document_count() for field in LINKED]
    done = 0
    for field in LINKED:
        # Batches of ids that exist: between imported ones there may be gaps of any size.
        async for rows in batches_by_id(counted.records(field), {"$gte": 0}, BATCH, {"_id": 1}):
            await _count_batch(counted, field, [row["_id"] for row in rows])
            done += len(rows)
            report("counting the events of venues, organizers, categories and tags", done, sum(sizes))


async def _count_batch(counted: Counted, field: str, ids: list[int]) -> None:
    """Count the events of linked records with these ids, which are in order."""
    between = {"$gte": ids[0], "$lte": ids[-1]}
    uncounted = {"events.as_of": {"$not": {"$gt": counted.at}}}
    updates = [
        UpdateOne({"_id": id, **uncounted}, {"$set": {"events": counters}})
        for id, counters in (await usage_counters(counted, field, between, ids)).items()
    ]
    await counted.records(field).bulk_write(updates, ordered=False)


async def snapshot_time(database: Database) -> Timestamp:
    """The time of the last committed write: as of then, events can be counted."""
    return (await asyncio.to_thread(read_clock, database.delegate)).time


async def usage_counters(
    counted: Counted, field: str, ids: dict[str, Any], records: Iterable[int]
) -> dict[int, dict[str, Any]]:
    """The usage counters of linked records; the condition `ids` matches all of them."""
    command = {
        "aggregate": counted.name(EVENT),
        "pipeline": _counting(field, ids, has_ends=LINKED[field].is_post),
        "cursor": {"batchSize": BATCH + 1},
        "readConcern": counted.read_concern,
    }
    # All batches: events may still have ids in between whose records were deleted meanwhile.
    database = counted.database.delegate
    rows = await asyncio.to_thread(lambda: list(database.cursor_command(command)))
    found = {row.pop("_id"): row for row in rows}
    none = {"publish": 0, "publish_end": None, "live_end": None}
    return {id: none | found.get(id, {}) | {"as_of": counted.at} for id in records}


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
