"""Embedded copies of venues, organizers and terms in events, and the fan-out that keeps them current.

Before a record that events embed is changed, a fan-out job is stored; after the change the job is run and
deleted. If the process dies in between, background maintenance of any process runs it: jobs are idempotent.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import timedelta
from itertools import product
from typing import Any

from pymongo.errors import WriteError

from schemas import BY_NAME, EVENT
from schemas.kind import Kind
from schemas.site import Site
from service.store.epoch import Epoch
from service.store.mongo.client import Database
from service.store.mongo.loaders import RecordLoader

log = logging.getLogger("kalends.copies")
SLICE = 500
"""Events updated per command."""
TOO_LARGE = (10334, 17419)
"""The server's error codes for a document above the size limit."""
ABANDONED_AFTER = timedelta(seconds=10)
"""A job older than this was left by a crashed process; a younger one may still wait for its change."""
FIELD = {name: field for field, name in EVENT.links.items()}
"""Name of a kind -> the event field that links to it."""
POST = ("author", "status", "date_utc", "modified_utc")
"""Fields embedded for every kind of post."""


def copy_of(kind: Kind, record: Mapping[str, Any]) -> dict[str, Any]:
    """The embedded copy of a record: the fields needed to show it."""
    kept = ("_id", "version", "slug", *kind.embedded_fields, *(POST if kind.is_post else ()))
    copy = {name: record.get(name) for name in kept}
    if copy.get("point", ...) is None:
        del copy["point"]  # a 2dsphere index accepts a missing point, but not null beside a point
    return copy


def is_copied(kind: Kind, name: str) -> bool:
    """Whether events embed this field of the records that they link to."""
    return kind.name in FIELD and (
        name == "slug" or name in kind.embedded_fields or (kind.is_post and name in POST)
    )


class Fanout:
    """Fan-out from a changed record to the events that embed it."""

    def __init__(self, database: Database, site: Site) -> None:
        self._database = database
        self._site = site
        self._events = database[EVENT.plural]
        self._jobs = database["chores"]
        self._versions = RecordLoader(database, {"version": 1})
        self.epoch = Epoch(database)

    async def enqueue(self, kind: Kind, id: int) -> dict[str, Any]:
        """Store a fan-out job for a record that is about to change."""
        job = {"_id": f"{kind.name}:{id}", "mark": secrets.token_hex(8), "at": self._site.now()}
        await self._jobs.replace_one({"_id": job["_id"]}, job, upsert=True)
        return job

    async def run(self, job: Mapping[str, Any]) -> None:
        """Run a fan-out job: update the copies in all events, then delete the job."""
        await self.epoch.begin()
        name, _, id = job["_id"].partition(":")
        await self._show(BY_NAME[name], int(id), {})
        await self._jobs.delete_one({"_id": job["_id"], "mark": job["mark"]})

    async def renew(self, kind: Kind, id: int, events: list[int]) -> None:
        """Update the copies in some events; others are left to the fan-out of whoever changed the record."""
        try:
            await self._show(kind, id, {"_id": {"$in": events}})
        except WriteError as error:
            log.warning("%s %s: not all copies were updated in events %s: %s", kind.name, id, events, error)

    async def _show(self, kind: Kind, id: int, among: dict[str, Any]) -> None:
        record = await self._database[kind.plural].find_one({"_id": id})
        await (self._renew(kind, record, among) if record else self._forget(kind, id, among))

    async def _renew(self, kind: Kind, record: Mapping[str, Any], among: dict[str, Any]) -> None:
        field, id, version = FIELD[kind.name], record["_id"], record["version"]
        outdated = {"$elemMatch": {"_id": id, "version": {"$lt": version}}}
        query = {f"{field}._id": id, field: outdated, "$and": [among]}
        filters = [{"copy._id": id, "copy.version": {"$lt": version}}]

        def change(**other: Any) -> dict[str, Any]:
            copy = copy_of(kind, record) | other
            now = self._site.now()
            return {"$set": {f"{field}.$[copy]": copy, "modified_utc": now}, "$inc": {"version": 1}}

        try:
            await self._in_slices(SLICE, query, change(), filters)
        except WriteError as error:
            if error.code not in TOO_LARGE:
                raise
            # Events at the size limit get the copy without its description, all others the whole copy.
            await self._in_slices(1, query, change(), filters, instead=change(description=None))

    async def _forget(self, kind: Kind, id: int, among: dict[str, Any]) -> None:
        field = FIELD[kind.name]
        query = {f"{field}._id": id, "$and": [among]}
        change = {"$pull": {field: {"_id": id}}, "$set": {"modified_utc": self._site.now()}}
        await self._in_slices(SLICE, query, change | {"$inc": {"version": 1}}, None)

    async def _in_slices(
        self, size: int, query: dict[str, Any], change: dict[str, Any], filters: Any, instead: Any = None
    ) -> None:
        """Update in small batches: other writers get through, and a repeated run only does what is left."""
        while ids := [row["_id"] for row in await self._events.find(query, {"_id": 1}).to_list(size)]:
            wanted = {**query, "_id": {"$in": ids}}
            try:
                await self._events.update_many(wanted, change, array_filters=filters)
            except WriteError as error:
                if instead is None or error.code not in TOO_LARGE:
                    raise
                await self._events.update_many(wanted, instead, array_filters=filters)

    async def resume_abandoned(self) -> None:
        """Run the jobs that crashed processes have left; one that fails does not stop the others."""
        async for job in self._jobs.find({"at": {"$lt": self._site.now() - ABANDONED_AFTER}}):
            try:
                await self.run(job)
            except WriteError:
                log.exception("fan-out job %s failed; left to the next maintenance run", job["_id"])

    async def refresh(self, events: Iterable[Mapping[str, Any]]) -> set[int]:
        """Check the versions of the records that events were linked to while they were written, and update
        outdated copies. Return the ids of the events that had any."""
        linked: defaultdict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
        for event, name in product(events, FIELD):
            for copy in event.get(FIELD[name], ()):
                linked[name, copy["_id"]].append((event["_id"], copy["version"]))
        found = await self._versions.load_many((BY_NAME[name].plural, id) for name, id in linked)
        stale: set[int] = set()
        for (name, id), copies in linked.items():
            now = found.get((BY_NAME[name].plural, id), {}).get("version")
            if outdated := [event for event, version in copies if version != now]:
                stale.update(outdated)
                await self.renew(BY_NAME[name], id, outdated)
        return stale


def in_background(tasks: set[asyncio.Task[None]], task: asyncio.Task[None]) -> None:
    """Hold a reference to a task until it is done, and log its failure."""
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    task.add_done_callback(_report)


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()):
        log.error("background task failed; left to the next maintenance run", exc_info=error)
