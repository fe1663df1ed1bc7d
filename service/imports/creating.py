"""Creates imported records, a batch at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import pymongo

from schemas.errors import Problem, Unavailable
from schemas.kind import Document, Kind
from service.imports.outcome import Result
from service.store.records.creation import Creator
from service.store.records.new_records import AlreadyImported, NewRecord

T = TypeVar("T")
BATCH_SECONDS = 60
"""Time limit for storing a batch."""


async def create_records(
    creator: Creator, kind: Kind, records: Mapping[NewRecord, T]
) -> list[tuple[T, Result]]:
    """Create records; return what each is made from, and what became of it."""
    with pymongo.timeout(BATCH_SECONDS):
        created = await creator.create_many(kind, list(records))
    return [(records[record], _result(found)) for record, found in created.items()]


def _result(created: Document | Exception) -> Result:
    if isinstance(created, AlreadyImported):
        return "same"
    if isinstance(created, Exception):
        return created if isinstance(created, Problem) else Unavailable()
    return "new"
