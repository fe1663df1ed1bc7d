"""Stores the rows of an import, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pymongo

from schemas.caller import Caller
from schemas.errors import Problem, Unavailable
from schemas.kind import Kind
from schemas.site import Site
from service.imports.ndjson.lines import ImportRow
from service.store.records.creation import AlreadyImported, Creator, NewRecord

BATCH_SECONDS = 60
"""Time limit for storing a batch."""


@dataclass
class ImportOutcome:
    """Lines stored, lines stored before, and refused lines with the reason."""

    imported: int = 0
    existing: int = 0
    refused: dict[int, Problem] = field(default_factory=dict)

    def __add__(self, other: ImportOutcome) -> ImportOutcome:
        refused = self.refused | other.refused
        return ImportOutcome(self.imported + other.imported, self.existing + other.existing, refused)


async def import_rows(
    creator: Creator, kind: Kind, caller: Caller, rows: Sequence[ImportRow]
) -> ImportOutcome:
    """Store the rows that are not stored yet."""
    with pymongo.timeout(BATCH_SECONDS):
        records = {
            NewRecord(await creator.with_hashed_password(row.data), caller, import_key=row.fingerprint): row
            for row in rows
        }
        created = await creator.create_many(kind, list(records))
    outcome = ImportOutcome()
    for record, result in created.items():
        if isinstance(result, AlreadyImported):
            outcome.existing += 1
        elif isinstance(result, Exception):
            refusal = result if isinstance(result, Problem) else Unavailable()
            outcome.refused[records[record].number] = refusal
        else:
            outcome.imported += 1
    return outcome


async def check_rows(site: Site, kind: Kind, rows: Sequence[ImportRow]) -> ImportOutcome:
    """In a dry run: find problems that the validation of single fields does not, such as an end before the
    start. Links are not looked up."""
    outcome = ImportOutcome()
    for row in rows:
        try:
            kind.normalize(row.data, None, site)
            outcome.imported += 1
        except Problem as problem:
            outcome.refused[row.number] = problem
    return outcome
