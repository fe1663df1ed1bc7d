"""What has been written to the events since, by any process: MongoDB's change stream, read when asked."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from bson import Timestamp
from pymongo.change_stream import CollectionChangeStream
from pymongo.errors import PyMongoError

from schemas.event import EVENT
from schemas.event_view import LINKED
from service.store.batches import Batch
from service.store.client import Database
from service.store.matching import Facts

log = logging.getLogger("kalends.news")
PLAIN = (
    *("_id", "status", "hide_from_listings", "author", "locked", "post_parent", "featured", "ticketed"),
    *("start_utc", "end_utc", "date_utc", "modified_utc", "sort", "tok"),
)
LINKS = {
    field: ("_id", "status", "author", "geo_lat", "point") if kind.is_post else ("_id",)
    for field, kind in LINKED.items()
}
FACTS = frozenset([*PLAIN, *LINKS])
"""Fields of an event that lists filter and sort by."""
SEARCHED = ("sort", "tok")
REMEMBERED = 4096


class Change(NamedTuple):
    """One write to one event. An update may tell no more than which fields it touched; what does not tell
    even that may have changed anything."""

    at: Timestamp
    touched: frozenset[str] | None = None
    old: Facts | None = None
    new: Facts | None = None

    @property
    def is_known(self) -> bool:
        return self.new is not None


class Move(NamedTuple):
    """What a change means to a list: an event came (1) or went (-1)."""

    at: Timestamp
    facts: Facts
    step: int


class News:
    """The latest changes, numbered in their order."""

    def __init__(self, database: Database) -> None:
        self._events = database[EVENT.plural]
        self._stream: CollectionChangeStream[dict[str, Any]] | None = None
        self._batch = Batch[None, None](self._listen)
        self._heard: deque[Change] = deque(maxlen=REMEMBERED)
        self.number = 0
        """Of the next change."""

    @property
    def oldest(self) -> int:
        return self.number - len(self._heard)

    def since(self, number: int) -> list[Change]:
        return list(islice(self._heard, number - self.oldest, None))

    async def catch_up(self) -> None:
        """Returns when everything that was acknowledged before the call has been heard."""
        await self._batch.ask(None)

    async def keep_up(self) -> None:
        """Hears what there is, if anybody listens: a stream that nobody reads falls behind."""
        if self._stream is not None:
            await self.catch_up()

    async def _listen(self, _: Sequence[None]) -> dict[None, None]:
        try:
            for change in await asyncio.to_thread(self._read):
                self._hear(change)
        except PyMongoError:
            await self.close()
            raise
        return {}

    def _read(self) -> list[dict[str, Any]]:
        """Everything up to now, in one go: thousands of changes cost one change of thread."""
        if self._stream is None:
            self._stream = self._events.delegate.watch(PIPELINE, batch_size=1000, max_await_time_ms=1)
        found = []
        while (change := self._stream.try_next()) is not None:
            found.append(change)
        return found

    def _hear(self, said: Mapping[str, Any]) -> None:
        change = self._understood(said)
        if change.touched is None or change.touched:
            self._heard.append(change)
            self.number += 1

    def _understood(self, said: Mapping[str, Any]) -> Change:
        at, operation = said["clusterTime"], said["operationType"]
        if operation == "insert":
            new = said["fullDocument"]
            return Change(at, new={name: new.get(name) for name in FACTS})
        if operation != "update":
            return Change(at)
        update = said["updateDescription"]
        names = [*said["touched"], *update["removedFields"]]
        names += [array["field"] for array in update.get("truncatedArrays", ())]
        touched = FACTS.intersection(name.partition(".")[0] for name in names)
        if (told := update["updatedFields"].get("told")) is None:
            return Change(at, touched)
        return Change(at, touched, told["was"], told["was"] | told["now"])

    async def close(self) -> None:
        """Forgets all: what is asked for next begins anew."""
        stream, self._stream = self._stream, None
        self._heard.clear()
        self.number += 1
        if stream is not None:
            await asyncio.to_thread(stream.close)


def telling(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """What an update must say beside what it changes, for other processes to know where the event was listed
    and where it is now: the change stream tells them nothing of what stays."""
    was, now = facts_of(old), facts_of(new)
    changed = {name: value for name, value in now.items() if value != was[name]}
    # With the version it is never what the last update said: what does not change is not told.
    return {"told": {"version": old["version"] + 1, "was": was, "now": changed}}


def facts_of(event: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of an event that was read without what only searches need."""
    plain = {name: event.get(name) for name in PLAIN if name not in SEARCHED}
    return plain | {
        field: [{name: copy.get(name) for name in names} for copy in event.get(field) or ()]
        for field, names in LINKS.items()
    }


PIPELINE: list[dict[str, Any]] = [
    {
        "$project": {
            **dict.fromkeys(("operationType", "clusterTime"), 1),
            **dict.fromkeys(("updateDescription.removedFields", "updateDescription.truncatedArrays"), 1),
            "updateDescription.updatedFields.told": 1,
            **{f"fullDocument.{name}": 1 for name in PLAIN},
            **{f"fullDocument.{field}.{name}": 1 for field, names in LINKS.items() for name in names},
            "touched": {
                "$map": {
                    "input": {"$objectToArray": {"$ifNull": ["$updateDescription.updatedFields", {}]}},
                    "in": "$$this.k",
                }
            },
        }
    }
]
"""Only what matters leaves the database."""
