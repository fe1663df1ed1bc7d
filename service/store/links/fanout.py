"""Fan-out: keeps the copies of venues, organizers and terms in events current.

A record that events embed is changed in a transaction that also stores a fan-out job. Then the job is run and
deleted. If the process dies before, background maintenance of any process runs it: jobs are idempotent.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial

from pymongo.errors import PyMongoError, WriteError

from schemas import BY_NAME, EVENT
from schemas.errors import Unavailable
from schemas.kind import Document, Kind
from schemas.kinds.event_representation import LINK_FIELD, LINKED, copied_fields
from schemas.site import Site
from service.background import BackgroundTasks, background_task
from service.changes.feed import ChangeFeed
from service.changes.link_states import links_of
from service.changes.list_fields import ListFields
from service.changes.usage import load_linked
from service.mongo.client import FIRST_BATCH, LENIENT, MALFORMED, Database, Session, aggregate, find
from service.mongo.loaders import HIDDEN_FIELDS, RecordLoader
from service.store.links.copies import CopyUpdate, outdated_copies, removal, replacement

log = logging.getLogger("kalends.fanout")
EVENTS_PER_COMMAND = 500
"""Events updated per command: other writers get through, and a repeated job skips what is done."""
INLINE_FANOUT_SECONDS = 2.0
"""How long a request waits for the fan-out to events; the rest runs in the background."""
TOO_LARGE = (10334, 17419)
"""The server's error codes for a document above the size limit."""
ABANDONED_AFTER = timedelta(seconds=10)
"""A job whose time is older was probably left by a crashed process: maintenance runs it."""
RENEWAL_SECONDS = 3.0
"""How often a process renews the time of a job that it runs."""
WITH_NOW: list[Document] = [{"$set": {"now": "$$NOW"}}]
"""Reads jobs with MongoDB's time, which theirs is compared with: the clocks of services may differ."""
RENEWAL = {"$currentDate": {"at": True}}


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
        self._resuming: asyncio.Task[None] | None = None

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
        is_embedded = kind.name in LINK_FIELD and not set(fields).isdisjoint(copied_fields(kind))
        return await self.enqueue(kind, [id] if is_embedded else [], session)

    async def run_soon(self, jobs: Sequence[Document]) -> None:
        """Run jobs in the background, but wait a little for them to finish."""
        if jobs:
            task = self._tasks.start(self._run_all(jobs), f"fan-out of {record_of(jobs[0])}")
            await asyncio.wait({task}, timeout=INLINE_FANOUT_SECONDS)

    async def _run_all(self, jobs: Iterable[Document]) -> None:
        """Run jobs. One that is refused or malformed is left for later, and does not stop the others."""
        for job in jobs:
            try:
                await self.run(job)
            except (*MALFORMED, WriteError):
                log.exception("fan-out job %s failed", job["_id"])

    async def run(self, job: Document) -> None:
        """Update the copies in all events, then delete the job."""
        name, _, id = record_of(job).partition(":")
        async with background_task(self._keep_renewing(job)):
            await self.update_copies(BY_NAME[name], int(id))
        await self._jobs.delete_one({"_id": job["_id"]})

    async def _keep_renewing(self, job: Document) -> None:
        """Renew the time of a job, so that no process takes it for abandoned while it runs."""
        while True:
            await asyncio.sleep(RENEWAL_SECONDS)
            with suppress(PyMongoError):  # the next renewal is early enough
                await self._jobs.update_one({"_id": job["_id"]}, RENEWAL)

    async def resume_abandoned(self) -> None:
        """Run the jobs that crashed processes have left in the background, but wait a little for them."""
        if self._resuming is None or self._resuming.done():
            self._resuming = self._tasks.start(self._resume_abandoned(), "abandoned fan-out jobs")
        await asyncio.wait({self._resuming}, timeout=INLINE_FANOUT_SECONDS)

    async def _resume_abandoned(self) -> None:
        for job, age in await self.jobs_with_ages():
            if age > ABANDONED_AFTER:
                taken = await self._jobs.update_one({"_id": job["_id"], "at": job["at"]}, RENEWAL)
                if taken.matched_count:  # no other process was first
                    await self._run_all([job])

    async def jobs_with_ages(self) -> list[tuple[Document, timedelta]]:
        """All jobs that have a time, with their ages."""
        jobs = await aggregate(self._jobs, [{"$match": {"at": {"$type": "date"}}}, *WITH_NOW])
        return [(job, job["now"] - job["at"]) for job in jobs]

    async def update_copies(self, kind: Kind, id: int, events: Sequence[int] | None = None) -> None:
        """Update the copies of a record, or remove them if it was deleted, in some events or in all; raises
        the first WriteError after all events were tried."""
        # Confirmed: if a new primary does not have the record yet, its copies must not be removed.
        record = await self._feed.confirm(lambda: self._database[kind.plural].find_one({"_id": id}))
        records, now = self._feed.restores.records, self._site.now()
        update = replacement(kind, record, now) if record else removal(kind, id, now)
        ids = await self._feed.confirm(partial(self._linked_to, kind, id)) if events is None else events
        refused = list[WriteError]()
        for at in range(0, len(ids), EVENTS_PER_COMMAND):
            refused += await self._update(update, ids[at : at + EVENTS_PER_COMMAND], records)
        if refused:
            raise refused[0]

    async def _linked_to(self, kind: Kind, id: int) -> Sequence[int]:
        """The ids of all events that link to a record now, from an index alone. Who writes one later compares
        its copies with the records itself."""
        field = LINK_FIELD[kind.name]
        query, events = {f"{field}._id": id}, self._events.delegate.with_options(LENIENT)

        def read() -> Sequence[int]:
            rows = events.find(query, {"_id": 1}, hint=f"linked_{field}", batch_size=FIRST_BATCH)
            return [row["_id"] for row in rows]

        return await asyncio.to_thread(read)

    async def _update(self, update: CopyUpdate, ids: Sequence[int], records: str | None) -> list[WriteError]:
        """Update the copies in some events, or one by one if that is refused; return why it is refused for
        single events. `records` is the identity of the records that the update was made from."""

        async def write() -> None:
            self._feed.restores.require(records)
            wanted = {**update.query, "_id": {"$in": ids}}
            await self._events.update_many(wanted, update.change, array_filters=update.array_filters)

        try:
            await self._feed.confirm(write)
        except WriteError as error:
            if len(ids) > 1:
                return [one for id in ids for one in await self._update(update, [id], records)]
            if update.smaller is None or error.code not in TOO_LARGE:
                return [error]
            return await self._update(update._replace(change=update.smaller, smaller=None), ids, records)
        return []

    async def compare_copies(self, events: Sequence[ListFields]) -> set[int]:
        """Compare the copies in events with the versions that linked records have now, and update outdated
        ones; return the ids of the events that had any."""
        links = {link for event in events for link in links_of(event)}
        records, found = await self._feed.confirm(partial(load_linked, self._versions, links)), set[int]()
        for (field, id), ids in outdated_copies(events, records).items():
            found.update(ids)
            try:
                await self.update_copies(LINKED[field], id, ids)
            except WriteError:  # an event at the size limit, which must not stop the others
                log.exception("copies of %s %d in events %s are outdated", LINKED[field].name, id, ids)
        return found

    async def update_outdated(self, events: Sequence[Document]) -> dict[int, Document]:
        """Update outdated copies in events that were just written; return the events that had any. If MongoDB
        fails now, the events are stored nevertheless: when their changes are counted, their copies are
        compared again."""
        try:
            ids = await self.compare_copies(events)
            rows = await find(self._events, {"_id": {"$in": [*ids]}}, HIDDEN_FIELDS) if ids else []
        except (PyMongoError, Unavailable) as error:
            log.warning("copies in events that were just written are compared later: %s", error)
            return {}
        return {row["_id"]: row for row in rows}
