"""Copies of venues, organizers and terms inside events, and the work of keeping them in step.

A change that events must follow is first written down as a chore, then made, then followed. Whoever dies in
between leaves the chore, and the next sweep of any process finishes it: each step may be done twice.
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
from service.store.client import Database
from service.store.epoch import Epoch
from service.store.lookups import Lookup

log = logging.getLogger("kalends.copies")
SLICE = 500
TOO_LARGE = (10334, 17419)
"""Codes of the server for a document beyond its limit."""
GRACE = timedelta(seconds=10)
"""A chore older than this belongs to a process that died; a younger one may still wait for its change."""
FIELD = {name: field for field, name in EVENT.links.items()}
"""Kind -> the field of an event that links to it."""
POST = ("author", "status", "date_utc", "modified_utc")


def copy_of(kind: Kind, record: Mapping[str, Any]) -> dict[str, Any]:
    """What an event keeps of a record: enough to show it."""
    kept = ("_id", "version", "slug", *kind.copied, *(POST if kind.is_post else ()))
    copy = {name: record.get(name) for name in kept}
    if copy.get("point", ...) is None:
        del copy["point"]  # an index of places takes none at all, but not null beside another venue's
    return copy


def is_copied(kind: Kind, name: str) -> bool:
    """Whether events show this field of the records that they link to."""
    return kind.name in FIELD and (name == "slug" or name in kind.copied or (kind.is_post and name in POST))


class Copies:
    """The fan-out from one changed record to the events that show it."""

    def __init__(self, database: Database, site: Site) -> None:
        self._database = database
        self._site = site
        self._events = database[EVENT.plural]
        self._chores = database["chores"]
        self._versions = Lookup(database, {"version": 1})
        self.epoch = Epoch(database)

    async def announce(self, kind: Kind, id: int) -> dict[str, Any]:
        """Writes down that events will have to follow this record."""
        chore = {"_id": f"{kind.name}:{id}", "mark": secrets.token_hex(8), "at": self._site.now()}
        await self._chores.replace_one({"_id": chore["_id"]}, chore, upsert=True)
        return chore

    async def follow(self, chore: Mapping[str, Any]) -> None:
        """Makes all events show the record as it is now, then crosses the chore off."""
        await self.epoch.begin()
        name, _, id = chore["_id"].partition(":")
        await self._show(BY_NAME[name], int(id), {})
        await self._chores.delete_one({"_id": chore["_id"], "mark": chore["mark"]})

    async def renew(self, kind: Kind, id: int, events: list[int]) -> None:
        """Makes some events show a record as it is now; all others are left to who has changed it."""
        try:
            await self._show(kind, id, {"_id": {"$in": events}})
        except WriteError as error:
            log.warning("%s %s is not shown as it is in all of %s: %s", kind.name, id, events, error)

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
            # An event that is full shows the record without its description; all others show it whole.
            await self._in_slices(1, query, change(), filters, instead=change(description=None))

    async def _forget(self, kind: Kind, id: int, among: dict[str, Any]) -> None:
        field = FIELD[kind.name]
        query = {f"{field}._id": id, "$and": [among]}
        change = {"$pull": {field: {"_id": id}}, "$set": {"modified_utc": self._site.now()}}
        await self._in_slices(SLICE, query, change | {"$inc": {"version": 1}}, None)

    async def _in_slices(
        self, size: int, query: dict[str, Any], change: dict[str, Any], filters: Any, instead: Any = None
    ) -> None:
        """Small steps: other writers get their turn, and a repeated one finds what is left."""
        while ids := [row["_id"] for row in await self._events.find(query, {"_id": 1}).to_list(size)]:
            wanted = {**query, "_id": {"$in": ids}}
            try:
                await self._events.update_many(wanted, change, array_filters=filters)
            except WriteError as error:
                if instead is None or error.code not in TOO_LARGE:
                    raise
                await self._events.update_many(wanted, instead, array_filters=filters)

    async def finish_chores(self) -> None:
        """Takes up what a process that died has left."""
        async for chore in self._chores.find({"at": {"$lt": self._site.now() - GRACE}}):
            await self.follow(chore)

    async def refresh(self, events: Iterable[Mapping[str, Any]]) -> set[int]:
        """Looks again at what events were linked to while they were written. The ids of those for which it
        has changed since: they are renewed."""
        linked: defaultdict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
        for event, name in product(events, FIELD):
            for copy in event.get(FIELD[name], ()):
                linked[name, copy["_id"]].append((event["_id"], copy["version"]))
        found = await self._versions.many((BY_NAME[name].plural, id) for name, id in linked)
        stale: set[int] = set()
        for (name, id), copies in linked.items():
            now = found.get((BY_NAME[name].plural, id), {}).get("version")
            if outdated := [event for event, version in copies if version != now]:
                stale.update(outdated)
                await self.renew(BY_NAME[name], id, outdated)
        return stale


def in_background(tasks: set[asyncio.Task[None]], task: asyncio.Task[None]) -> None:
    """Keeps a task until it is done, and says so if it fails."""
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    task.add_done_callback(_report)


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()):
        log.warning("left for the next sweep: %s", error)
