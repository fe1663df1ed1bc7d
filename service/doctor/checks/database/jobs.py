"""Checks fan-out jobs, and what is remembered of deleted terms."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from schemas import BY_PLURAL
from schemas.kind import Document
from schemas.kinds.event_representation import LINK_FIELD
from schemas.values.dates import EPOCH
from service.changes.change import REMOVED_TERMS
from service.doctor.findings import DatabaseCheck, Finding
from service.doctor.scope import Scope
from service.doctor.values import CLOCK_ERROR, is_number, is_time
from service.store.links.fanout import WITH_NOW, record_of

JOBS = "fanout_jobs"
LEFT_AFTER = timedelta(minutes=2)
"""A job older than this would have been deleted by the maintenance of any service."""


async def find_jobs(scope: Scope) -> list[Finding]:
    """A job is deleted as soon as the copies of its record are updated; maintenance resumes old ones."""
    return [
        Finding(f"fan-out job {job['_id']!r}", problem, repair=partial(_run, scope, job))
        async for job in scope.collection(JOBS).aggregate(WITH_NOW)
        if (problem := _wrong_job(job, job["now"]))
    ]


def _wrong_job(job: Document, now: datetime) -> str:
    if not _is_valid(job):
        return "it belongs to no record that has copies"
    if not is_time(job.get("at")):
        return "it has no time"
    if job["at"] > now + CLOCK_ERROR:
        return f"its time {job['at']} UTC is in the future: nobody would run it"
    is_left = now - LEFT_AFTER > job["at"] > EPOCH  # those of a restore wait for the first service
    return f"it was left at {job['at']} UTC by a process that ended" if is_left else ""


def _is_valid(job: Document) -> bool:
    if not isinstance(job["_id"], str):
        return False
    name, _, id = record_of(job).partition(":")
    return name in LINK_FIELD and id.isascii() and id.isdigit()


async def _run(scope: Scope, job: Document) -> None:
    if _is_valid(job):
        await scope.fanout.run(job)
    else:
        await scope.database[JOBS].delete_one({"_id": job["_id"]})


async def find_removed(scope: Scope) -> list[Finding]:
    return [
        Finding(f"removed term {row['_id']}", problem, repair=partial(_forget, scope, row))
        async for row in scope.collection(REMOVED_TERMS).find()
        if (problem := await _wrong_removed(scope, row))
    ]


async def _wrong_removed(scope: Scope, row: Document) -> str:
    kind = BY_PLURAL.get(str(row.get("kind")))
    if kind is None or kind.is_post or not is_number(row["_id"]) or not is_time(row.get("at")):
        return "its kind or time is not valid"
    exists = await scope.collection(kind.plural).find_one({"_id": row["_id"]}, {"_id": 1})
    return f"it is remembered as deleted, but {kind.name} {row['_id']} exists" if exists else ""


async def _forget(scope: Scope, row: Document) -> None:
    await scope.database[REMOVED_TERMS].delete_one({"_id": row["_id"], "at": row.get("at")})


FANOUT_JOBS = DatabaseCheck(
    "fan-out jobs",
    "a fan-out job (an update of copies in events) was left over, or its record does not exist: run, and "
    "deleted",
    find_jobs,
)
REMOVED = DatabaseCheck(
    "removed terms",
    "a category or tag that exists is listed as deleted: removed from that list",
    find_removed,
)
