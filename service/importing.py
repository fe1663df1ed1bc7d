"""`kalends import`: many records from a file with one JSON object on each line."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from config import SettingError, Settings
from schemas.caller import EVERYBODY
from service.lines import Batch, Pace, batches, read
from service.progress import Progress
from service.serve import opened
from service.store.bulk import BY_PLURAL, Bulk, Outcome, Row, bulk


async def import_file(settings: Settings, path: str, plural: str, author: int) -> int:
    """Imports what is not there yet, and says so. Exit status 1: lines were refused."""
    kind = BY_PLURAL[plural]
    caller = replace(EVERYBODY, id=author)
    with opened_file(path) as (file, size):
        async with opened(settings) as store, bulk(store, kind, caller) as way:
            progress, total, pace = Progress(sys.stderr, size), Outcome(), Pace()
            async for part in ahead(batches(file, kind, settings.max_body, pace), way):
                begun = time.monotonic()
                outcome = part.outcome + await way.store(part.rows)
                pace.learn(time.monotonic() - begun)
                for line in told(outcome):
                    progress.say(line)
                total += outcome
                progress.show(part.end, total.imported + total.there + len(total.refused))
    progress.end()
    print(f"{total.imported} imported, {total.there} already there, {len(total.refused)} refused")
    return 1 if total.refused else 0


@contextmanager
def opened_file(path: str) -> Iterator[tuple[BinaryIO, int]]:
    """The file and its size; that of the standard input is not known, and 0."""
    if path == "-":
        yield sys.stdin.buffer, 0
        return
    try:
        size = Path(path).stat().st_size
        file = Path(path).open("rb")  # noqa: SIM115 - an error while it is being read is another matter
    except OSError as error:
        raise SettingError(f"cannot read {path}: {error.strerror}") from None
    with file:
        yield file, size


@dataclass
class Part:
    """Rows that are ready to be stored, what became of the lines beside them, and where they end."""

    rows: list[Row]
    outcome: Outcome
    end: int


async def ahead(batches: Iterator[Batch], way: Bulk) -> AsyncIterator[Part]:
    """Reads and checks the next lines while the last ones are being stored."""
    coming = asyncio.create_task(read_part(batches, way))
    while part := await coming:
        coming = asyncio.create_task(read_part(batches, way))
        yield part


async def read_part(batches: Iterator[Batch], way: Bulk) -> Part | None:
    batch = await asyncio.to_thread(next, batches, None)
    if batch is None:
        return None
    known = await way.known(line.mark for line in batch.lines)
    fresh = [line for line in batch.lines if line.mark not in known]
    rows, refused = await asyncio.to_thread(read, fresh, way.kind, way.site)
    return Part(rows, Outcome(there=len(known), refused=refused), batch.end)


def told(outcome: Outcome) -> Iterator[str]:
    """What is wrong with each refused line, field by field."""
    for number, problem in sorted(outcome.refused.items()):
        params = problem.data.get("params")
        said = (
            [f"{name}: {text}" for name, text in params.items()]
            if isinstance(params, dict)
            else [problem.text]
        )
        yield from (f"line {number}: {text}" for text in said)
