"""Embedded copies of venues, organizers and terms in events, and the fan-out that keeps them current.

A record that events embed is changed in a transaction that also stores a fan-out job. Then the job is run and
deleted. If the process dies before, background maintenance of any process runs it: jobs are idempotent.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from pymongo.errors import PyMongoError, WriteError

from schemas import BY_NAME, EVENT
from schemas.errors import Unavailable
from schemas.kind import Document, Kind
from schemas.kinds.event_representation import LINKED
from schemas.site import Site
from service.background import BackgroundTasks
from service.changes.feed import ChangeFeed
from service.mongo.client import Database, Session, aggregate
from service.mongo.loaders import HIDDEN_FIELDS, RecordLoader

log = logging.getLogger("kalends.fanout")
EVENTS_PER_COMMAND = 500
"""Events updated per command."""
INLINE_FANOUT_SECONDS = 2.0
"""How long a request waits for the fan-out to events; the rest runs in the background."""
TOO_LARGE = (10334, 17419)
"""The server's error codes for a document above the size limit."""
ABANDONED_AFTER = timedelta(seconds=10)
"""A job older than this was probably left by a crashed process: maintenance runs it."""
WITH_NOW: list[Document] = [{"$set": {"now": "$$NOW"}}]
"""Reads jobs with MongoDB's time, which theirs is compared with: the clocks of services may differ."""
FIELD = {name: field for field, name in EVENT.links.items()}
"""Name of a kind -> the event field that links to it."""
POST = ("author", "status", "date_utc", "modified_utc")
"""Fields embedded for every kind of post."""


def copy_of(kind: Kind, record: Document) -> Document:
    """The embedded copy of a record: the fields needed to show it."""
    kept = ("_id", "version", "slug", *kind.embedded_fields, *(POST if kind.is_post else ()))
    return {name: record.get(name) for name in kept}


def new_version(fields: Document, now: datetime) -> Document:
    """An update that sets fields, raises the version, and never sets the time of change back, since clocks of
    processes differ. A record may have changed before within the same second: it has no time of its own."""
    return {
        "$set": fields | {"has_own_time": False},
        "$max": {"modified_utc": now},
        "$inc": {"version": 1},
    }


def is_copied(kind: Kind, name: str) -> bool:
    """Whether events embed this field of the records that they link to."""
    return kind.name in FIELD and (
        name == "slug" or name in kind.embedded_fields or (kind.is_post and name in POST)
    )


def record_of(job: Document) -> str:
    """The record whose copies a job updates, such as `venue:5`; the id of the job begins with it."""
    return ":".join(job["_id"].split(":")[:2])


class Fanout:
    """Fan-out from a changed record to the events that embed it."""

    def __init__(self, database: Database, site: Site, feed: ChangeFeed, tasks: BackgroundTasks) -> None:
        self._database = database
        self._site, self._feed, self._tasks = site, feed, tasks
        self._events = database[EVENT.plural]
        self._jobs = database["fanout_jobs"]
        self._versions = RecordLoader(database, {"version": 1})

    async def enqueue(self, kind: Kind, ids: Iterable[int], session: Session) -> list[Document]:
        """Store a fan-out job for each record that a transaction changes."""
        now = self._feed.now
        jobs = [{"_id": f"{kind.name}:{id}:{secrets.token_hex(8)}", "at": now} for id in ids]
        if jobs:
            await self._jobs.insert_many(jobs, session=session)
        return jobs

    async def enqueue_if_embedded(
        self, kind: Kind, id: int, fields: Iterable[str], session: Session
    ) -> list[Document]:
        """Store a fan-out job for a record if events embed one of the fields that a transaction changes."""
        is_embedded = any(is_copied(kind, name) for name in fields)
        return await self.enqueue(kind, [id] if is_embedded else [], session)

    async def count_jobs(self) -> int:
        return await self._jobs.count_documents({})

    async def run_soon(self, jobs: Sequence[Document]) -> None:
        """Run jobs in the background, but wait a little for them to finish."""
        if jobs:
            task = self._tasks.start(self._run_all(jobs), f"fan-out of {record_of(jobs[0])}")
            await asyncio.wait({task}, timeout=INLINE_FANOUT_SECONDS)

    async def _run_all(self, jobs: Iterable[Document]) -> None:
        """Run jobs; one that fails does not stop the others, and is left to the next maintenance run."""
        for job in jobs:
            try:
                await self.run(job)
            except WriteError:
                log.exception("fan-out job %s failed", job["_id"])

    async def run(self, job: Document) -> None:
        """Update the copies in all events, then delete the job."""
        name, _, id = record_of(job).partition(":")
        await self.update_copies(BY_NAME[name], int(id))
        await self._jobs.delete_one({"_id": job["_id"]})

    async def resume_abandoned(self) -> None:
        """Run the jobs that crashed processes have left."""
        await self._run_all([job for job, age in await self.jobs_with_ages() if age > ABANDONED_AFTER])

    async def jobs_with_ages(self) -> list[tuple[Document, timedelta]]:
        """All jobs that have a time, with their ages."""
        jobs = await aggregate(self._jobs, [{"$match": {"at": {"$type": "date"}}}, *WITH_NOW])
        return [(job, job["now"] - job["at"]) for job in jobs]

    async def update_copies(self, kind: Kind, id: int, events: Sequence[int] | None = None) -> None:
        """Update the copies of a record, or remove them if it was deleted, in some events or in all."""
        among: Document = {} if events is None else {"_id": {"$in": events}}
        # Confirmed: if a new primary does not have the record yet, its copies must not be removed.
        record = await self._feed.confirm(lambda: self._database[kind.plural].find_one({"_id": id}))
        await (self._replace_copies(kind, record, among) if record else self._remove_copies(kind, id, among))

    async def refresh(self, events: Iterable[Document]) -> dict[int, Document]:
        """Compare the copies in events that were just written with the versions that linked records have now,
        and update outdated ones; return the events that had any. If MongoDB fails now, the events are stored
        nevertheless, and background maintenance updates their copies."""
        copies = [
            (kind, copy, event["_id"])
            for event in events
            for field, kind in LINKED.items()
            for copy in event.get(field, ())
        ]
        records = {(kind.plural, copy["_id"]) for kind, copy, _ in copies}
        outdated: dict[int, Document | None] = {}
        try:
            found = await self._feed.confirm(lambda: self._versions.load_many(records))
            for kind, copy, event in copies:
                if found.get((kind.plural, copy["_id"]), {}).get("version") != copy["version"]:
                    await self.update_copies(kind, copy["_id"], [event])
                    outdated[event] = await self._events.find_one({"_id": event}, HIDDEN_FIELDS)
        except (PyMongoError, Unavailable) as error:
            log.warning("copies in new events are checked later: %s", error)
        return {id: event for id, event in outdated.items() if event}

    async def _replace_copies(self, kind: Kind, record: Document, among: Document) -> None:
        field, id, version = FIELD[kind.name], record["_id"], record["version"]
        outdated = {"$elemMatch": {"_id": id, "version": {"$lt": version}}}
        query = {f"{field}._id": id, field: outdated, **among}
        filters = [{"copy._id": id, "copy.version": {"$lt": version}}]

        def change(**other: Any) -> Document:
            copy = copy_of(kind, record) | other
            return new_version({f"{field}.$[copy]": copy}, self._site.now())

        try:
            await self._in_slices(EVENTS_PER_COMMAND, query, change(), filters)
        except WriteError as error:
            if error.code not in TOO_LARGE:
                raise
            # Events at the size limit get the copy without its description, all others the whole copy.
            await self._in_slices(1, query, change(), filters, instead=change(description=None))

    async def _remove_copies(self, kind: Kind, id: int, among: Document) -> None:
        field = FIELD[kind.name]
        change = {"$pull": {field: {"_id": id}}} | new_version({}, self._site.now())
        await self._in_slices(EVENTS_PER_COMMAND, {f"{field}._id": id, **among}, change, None)

    async def _in_slices(
        self, size: int, query: Document, change: Document, filters: Any, instead: Any = None
    ) -> None:
        """Update in small batches: other writers get through, and a repeated run only does what is left."""
        found = self._events.find(query, {"_id": 1})
        # A restore may replace the records between two batches.
        while ids := [row["_id"] for row in await self._feed.confirm(lambda: found.clone().to_list(size))]:
            wanted = {**query, "_id": {"$in": ids}}
            try:
                await self._events.update_many(wanted, change, array_filters=filters)
            except WriteError as error:
                if instead is None or error.code not in TOO_LARGE:
                    raise
                await self._events.update_many(wanted, instead, array_filters=filters)
