"""Scans: a whole list at one moment, as the ids and versions of its records. Feeds are written from them."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Any

from pymongo.read_concern import ReadConcern

from schemas.dates import EPOCH
from service.store.lists.query import ListQuery
from service.store.mongo.client import FIRST_BATCH, Collection

FIELDS = {"version": 1, "modified_utc": 1, "timezone": 1, "start_utc": 1, "end_utc": 1}


@dataclass
class Scan:
    """The records of a list in its order, in 16 bytes each."""

    ids: array[int] = field(default_factory=lambda: array("q"))
    versions: array[int] = field(default_factory=lambda: array("q"))
    modified: datetime = EPOCH
    """When the last one of them was changed."""
    zones: dict[str, tuple[datetime, datetime]] = field(default_factory=dict)
    """The time zones of its events, each with the earliest start and the latest end."""

    @property
    def digest(self) -> str:
        """A hash of the ids and versions."""
        return blake2b(self.ids.tobytes() + self.versions.tobytes(), digest_size=16).hexdigest()

    def add(self, row: Mapping[str, Any]) -> None:
        self.ids.append(row["_id"])
        self.versions.append(row["version"])
        self.modified = max(self.modified, row["modified_utc"])
        if zone := row.get("timezone"):
            first, last = self.zones.get(zone, (row["start_utc"], row["end_utc"]))
            self.zones[zone] = (min(first, row["start_utc"]), max(last, row["end_utc"]))


async def scan(collection: Collection, lists: Iterable[ListQuery]) -> Scan:
    """Scan lists, one after the other, each at one moment."""
    return await asyncio.to_thread(_scan, collection, list(lists))


def _scan(collection: Collection, lists: Iterable[ListQuery]) -> Scan:
    found = Scan()
    snapshot = collection.delegate.with_options(read_concern=ReadConcern("snapshot"))
    for asked in lists:
        pipeline = [{"$match": asked.filter}, {"$sort": dict(asked.sort)}, {"$project": FIELDS}]
        for row in snapshot.aggregate(pipeline, batchSize=FIRST_BATCH):
            found.add(row)
    return found
