"""Scans: whole lists at one moment, as the ids and versions of their records. Feeds are written from them."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import blake2b
from itertools import islice
from typing import Any

from pymongo.errors import ConfigurationError

from schemas.kind import Document
from schemas.values.dates import EPOCH
from service.mongo.client import Collection, replace_connections
from service.store.lists.query import ListQuery

FIELDS = {"version": 1, "modified_utc": 1, "timezone": 1, "start_utc": 1, "end_utc": 1}
MILLISECOND = timedelta(milliseconds=1)
READ_AHEAD = 1000
"""Rows that are read at a time: few enough to come from a cold disk within the time limit of a command."""


@dataclass
class Scan:
    """The ids, versions and times of the records of lists in their order, 24 bytes each. Long lists are not
    looked through: only `heads` has their ids, without versions."""

    collection: Collection
    lists: Sequence[ListQuery]
    is_complete: bool
    ids: array[int] = field(default_factory=lambda: array("q"))
    versions: array[int] = field(default_factory=lambda: array("q"))
    times: array[int] = field(default_factory=lambda: array("q"))
    """When each was changed, in milliseconds."""
    modified: datetime = EPOCH
    """When the last one of them was changed."""
    zones: dict[str, tuple[datetime, datetime]] = field(default_factory=dict)
    """The time zones of its events, each with the earliest start and the latest end."""

    @property
    def digest(self) -> str:
        """A hash of the ids, the versions and the times."""
        content = b"".join(numbers.tobytes() for numbers in (self.ids, self.versions, self.times))
        return blake2b(content, digest_size=16).hexdigest()

    def add(self, row: Mapping[str, Any]) -> None:
        self.ids.append(row["_id"])
        self.versions.append(row["version"])
        self.times.append((row["modified_utc"] - EPOCH) // MILLISECOND)
        self.modified = max(self.modified, row["modified_utc"])
        if zone := row.get("timezone"):
            first, last = self.zones.get(zone, (row["start_utc"], row["end_utc"]))
            self.zones[zone] = (min(first, row["start_utc"]), max(last, row["end_utc"]))

    async def heads(self, size: int) -> AsyncGenerator[list[Document]]:
        """All records in batches of this size: their ids and, if the scan is complete, versions."""
        if self.is_complete:
            rows = zip(self.ids, self.versions, self.times, strict=True)
            while batch := [head(*row) for row in islice(rows, size)]:
                yield batch
            return
        async with aclosing(read_ahead(self.collection, self.lists)) as batches:
            async for ids in batches:
                for at in range(0, len(ids), size):
                    yield [{"_id": id} for id in ids[at : at + size]]


def head(id: int, version: int, time: int) -> Document:
    return {"_id": id, "version": version, "modified_utc": EPOCH + time * MILLISECOND}


def scan(collection: Collection, lists: Sequence[ListQuery], max_records: int) -> Scan:
    """Scan lists (blocking) if they have at most `max_records` records together."""
    # An index is enough to count them, which matters if the records have to be read from a cold disk.
    counts = _rows(collection, lists, [{"$limit": max_records + 1}, {"$count": "number"}])
    found = Scan(collection, lists, sum(row["number"] for row in counts) <= max_records)
    for row in _rows(collection, lists, [{"$project": FIELDS}]) if found.is_complete else ():
        found.add(row)
    return found


async def read_ahead(collection: Collection, lists: Sequence[ListQuery]) -> AsyncGenerator[array[int]]:
    """The ids of whole lists. They are read as fast as MongoDB sends them, however slowly they are used: it
    keeps the moment at which they are read for five minutes only."""
    batches: asyncio.Queue[array[int]] = asyncio.Queue()
    rows = _rows(collection, lists, [{"$project": {"_id": 1}}])

    async def read() -> None:
        while ids := await asyncio.to_thread(_ids, rows):
            batches.put_nowait(ids)

    reading = asyncio.create_task(read())
    reading.add_done_callback(lambda _: batches.put_nowait(array("q")))
    try:
        while ids := await batches.get():
            yield ids
        await reading  # raises what it failed with
    finally:
        reading.cancel()


def _ids(rows: Iterator[Document]) -> array[int]:
    return array("q", (row["_id"] for row in islice(rows, READ_AHEAD)))


def _rows(
    collection: Collection, lists: Sequence[ListQuery], stages: Sequence[Document]
) -> Iterator[Document]:
    """The rows of lists, all read at the same moment: no record is in two lists because it was changed in
    between. Records of other programs whose ids are not numbers have no place in a feed."""
    records = collection.delegate
    try:
        with records.database.client.start_session(snapshot=True) as session:
            for query in lists:
                pipeline = [{"$match": query.filter}, {"$sort": dict(query.sort)}, *stages]
                with records.aggregate(pipeline, session=session, batchSize=READ_AHEAD) as rows:
                    yield from (row for row in rows if isinstance(row.get("_id", 0), int))
    except ConfigurationError:  # the next scan will not meet it
        replace_connections(records.database.client)
        raise
