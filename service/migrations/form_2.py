"""From form 1, of version 0.1.0, to form 2. It does not use the store's code, which may change later.

Usage counters are counted from the change feed now, so that the outbox of their changes goes; without a
checkpoint the store counts them anew when it starts. An imported record stores the key of its line itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from bson import MinKey
from pymongo import UpdateOne
from pymongo.errors import OperationFailure

from service.mongo.client import Database, batches_by_id

Report = Callable[[str, int, int], None]
"""(step, records done, records in all) -> shows the progress."""
RECORDS = ("events", "venues", "organizers", "categories", "tags")
SLICE = 5_000
"""Documents changed by one command."""
OBSOLETE_INDEXES = {
    **dict.fromkeys(("venues", "organizers"), ("by_use", "any_by_use")),
    "events": (
        *("in_categories", "in_tags", "in_venue", "in_organizer"),
        *("featured", "ticketed", "part_of", "place", "last_venue", "last_organizer"),
    ),
}


async def upgrade(database: Database, report: Report) -> None:
    """Upgrade a database. Every step can be repeated."""
    await _in_slices(database, "imports", _add_import_keys, report)
    await _in_slices(database, "events", _unset_obsolete_fields, report)
    async for job in database["chores"].find():
        await database["fanout_jobs"].replace_one({"_id": job["_id"]}, {"at": job["at"]}, upsert=True)
    for name in ("debts", "importers", "imports", "chores"):
        await database.drop_collection(name)
    for name, indexes in OBSOLETE_INDEXES.items():
        for index in indexes:
            with suppress(OperationFailure):  # dropped before
                await database[name].drop_index(index)
    await database["counters"].delete_one({"_id": "epoch"})


async def _in_slices(database: Database, name: str, change: Any, report: Report) -> None:
    """Change a collection in slices, in the order of its ids."""
    done, total = 0, await database[name].estimated_document_count()
    async for rows in batches_by_id(database[name], {"$gte": MinKey()}, SLICE, {"record": 1}):
        await change(database, rows)
        done += len(rows)
        report(f"upgrading {name}", done, total)


async def _add_import_keys(database: Database, entries: Sequence[dict[str, Any]]) -> None:
    """An entry has no kind, but its key depends on it: a record of another kind with the same id may get it,
    too. Claims without a record are dropped, so that the line can be imported."""
    keys = {entry["record"]: entry["_id"] for entry in entries}
    for name in RECORDS:
        rows = database[name].find({"_id": {"$in": list(keys)}}, {"_id": 1})
        updates = [
            UpdateOne({"_id": row["_id"]}, {"$set": {"import_key": keys[row["_id"]]}}) async for row in rows
        ]
        if updates:
            await database[name].bulk_write(updates, ordered=False)


async def _unset_obsolete_fields(database: Database, events: Sequence[dict[str, Any]]) -> None:
    ids = {"$gte": events[0]["_id"], "$lte": events[-1]["_id"]}
    await database["events"].update_many({"_id": ids}, {"$unset": {"debt": "", "told": ""}})
    located = {"_id": ids, "venue.point": {"$exists": True}}
    await database["events"].update_many(located, {"$unset": {"venue.$[].point": ""}})
