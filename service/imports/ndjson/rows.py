"""Stores the rows of an import, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.caller import Caller
from schemas.errors import Problem
from schemas.kind import Kind
from schemas.site import Site
from service.imports.creating import create_records
from service.imports.ndjson.lines import ImportRow
from service.imports.outcome import Result
from service.store.records.creation import Creator
from service.store.records.new_records import NewRecord

LineResults = dict[int, Result]
"""What became of each line, by its number."""


async def import_rows(creator: Creator, kind: Kind, caller: Caller, rows: Sequence[ImportRow]) -> LineResults:
    """Store the rows that are not stored yet."""
    records = {
        NewRecord(await creator.with_hashed_password(row.data), caller, import_key=row.fingerprint): row
        for row in rows
    }
    return {row.number: result for row, result in await create_records(creator, kind, records)}


async def check_rows(site: Site, kind: Kind, rows: Sequence[ImportRow]) -> LineResults:
    """In a dry run: find problems that the validation of single fields does not, such as an end before the
    start. Links are not looked up."""
    return {row.number: _checked(site, kind, row) for row in rows}


def _checked(site: Site, kind: Kind, row: ImportRow) -> Result:
    try:
        kind.normalize(row.data, None, site)
    except Problem as problem:
        return problem
    return "new"
