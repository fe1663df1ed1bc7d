"""Checks the change log, and the checkpoint up to which changes are counted and logged."""

from __future__ import annotations

from functools import partial
from typing import Any

from bson import Timestamp

from schemas import BY_PLURAL
from schemas.kind import Document
from service.changes.change import ACTIONS
from service.changes.feed import CHECKPOINT
from service.changes.log_rows import LOG
from service.doctor.findings import DatabaseCheck, Finding
from service.doctor.scope import Scope
from service.doctor.values import is_number, is_time
from service.migrations import log_progress
from service.migrations.recount import events_uuid, recount_if_needed, recover, snapshot_time

QUERY = {"_id": CHECKPOINT}
ALL_ACTIONS = {*ACTIONS.values(), "trashed", "restored"}


async def find_checkpoint(scope: Scope) -> list[Finding]:
    stored = await scope.collection("meta").find_one(QUERY)
    if problem := await _unusable(scope, stored):
        return [Finding("change log", problem, "checkpoint", repair=partial(_begin, scope))]
    assert stored is not None
    if stored["at"] > await snapshot_time(scope.database):
        problem = f"its checkpoint is at {stored['at'].as_datetime():%Y-%m-%d %H:%M} UTC, in the future"
        return [Finding("change log", problem, "time", repair=partial(_set_back, scope, stored))]
    await scope.catch_up()
    if scope.store.feed.has_lost_changes:
        problem = "changes since its checkpoint are not in MongoDB's oplog any more"
        return [Finding("change log", problem, "lost", repair=partial(_recover, scope))]
    return []


async def _unusable(scope: Scope, stored: Document | None) -> str:
    if stored is None:
        return "its checkpoint is missing"
    is_valid = (
        isinstance(stored.get("at"), Timestamp)
        and is_number(stored.get("number"))
        and isinstance(stored.get("log"), str)
        and stored["log"]
    )
    if not is_valid:
        return "its checkpoint has no valid time, number or identity"
    is_same = stored.get("events_uuid") == await events_uuid(scope.database)
    return "" if is_same else "its checkpoint is that of another collection of events"


async def _begin(scope: Scope) -> None:
    """Begin the log anew and count all events, as at the first start after a restore."""
    await scope.database["meta"].delete_one(QUERY)
    await recount_if_needed(scope.database, log_progress)
    scope.store.feed.reopen()


async def _set_back(scope: Scope, stored: Document) -> None:
    """Set the checkpoint to the last change that was logged: what follows it is read again."""
    last = await scope.collection(LOG).find_one({"at": {"$type": "date"}}, sort=[("_id", -1)])
    now = await snapshot_time(scope.database)
    at = min(now, Timestamp(last["at"], 1)) if last and is_time(last["at"]) else now
    await scope.database["meta"].update_one({**QUERY, "at": stored["at"]}, {"$set": {"at": at}})
    scope.store.feed.reopen()


async def _recover(scope: Scope) -> None:
    store = scope.store
    await recover(scope.database, log_progress, store.log.repair, store.feed.begun_at)
    store.feed.reopen()


async def find_rows(scope: Scope) -> list[Finding]:
    found = [_malformed(scope, row) async for row in scope.collection(LOG).find(_not_valid())]
    rows = scope.collection(LOG).find({"_id": {"$type": "number"}}, {"_id": 1}).sort("_id", -1)
    last = await rows.to_list(1)
    # read after the rows: services append rows and raise the number in one transaction
    number = (await scope.collection("meta").find_one(QUERY) or {}).get("number")
    if last and is_number(number) and last[0]["_id"] > number:
        problem = f"it has changes up to number {last[0]['_id']}, but its checkpoint says {number}"
        repair = partial(_raise_number, scope, number, last[0]["_id"])
        found.append(Finding("change log", problem, "number", repair=repair))
    return found


def _not_valid() -> Document:
    """Matches rows that readers cannot read, or that never expire."""
    of_wrong_type = [
        {name: {"$not": {"$type": type}}}
        for name, type in (("_id", "number"), ("id", "number"), ("at", "date"), ("expires_at", "date"))
    ]
    return {
        "$or": [
            *of_wrong_type,
            {"kind": {"$nin": list(BY_PLURAL)}},
            {"action": {"$nin": sorted(ALL_ACTIONS)}},
        ]
    }


def _malformed(scope: Scope, row: Document) -> Finding:
    problem = "its kind, ID, action or times are not valid"
    return Finding(f"change {row['_id']!r:.40}", problem, repair=partial(_rewrite, scope, row))


async def _rewrite(scope: Scope, row: Document) -> None:
    """Replace a row by one that tells the record as it is now; if it does not tell which, remove it: then
    readers with older tokens are told to read the lists again."""
    query: dict[str, Any] = {"_id": row["_id"]}
    if not is_number(row["_id"]) or row.get("kind") not in BY_PLURAL or not is_number(row.get("id")):
        await scope.database[LOG].delete_one(query)
        return
    now = scope.site.now()
    kept: Document = {name: row[name] for name in ("kind", "id", "touched", "was", "now") if name in row}
    kept["at"] = row["at"] if is_time(row.get("at")) else now
    kept["expires_at"] = (
        row["expires_at"] if is_time(row.get("expires_at")) else now + scope.site.changes_kept
    )
    if row.get("action") in ALL_ACTIONS:
        kept["action"] = row["action"]
    else:
        kept |= {"action": "changed", "is_lost": True}
    await scope.database[LOG].replace_one(query, kept)


async def _raise_number(scope: Scope, number: int, last: int) -> None:
    await scope.database["meta"].update_one({**QUERY, "number": number}, {"$set": {"number": last}})


CHECKPOINTS = DatabaseCheck(
    "checkpoint",
    "the checkpoint of the change log is missing or not valid, or changes are lost: events are counted, and "
    "the log is begun anew or set back",
    find_checkpoint,
)
LOG_ROWS = DatabaseCheck(
    "change log",
    "a row cannot be read, or is beyond the checkpoint: rewritten, and the checkpoint moved",
    find_rows,
)
