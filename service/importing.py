"""`kalends import`: many records from a file with one JSON object on each line."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar

from config import SettingError, Settings
from schemas import BY_PLURAL
from schemas.caller import EVERYBODY
from schemas.errors import Problem
from service.database import opened
from service.lines import Batch, Line, batches, read
from service.progress import Progress
from service.store.bulk import Bulk, Outcome, bulk
from service.store.drafts import Row

T = TypeVar("T")
ReadRows = Callable[[list[Line]], tuple[list[Row], dict[int, Problem]]]
AT_ONCE = 3
"""Batches that are being stored at a time: MongoDB stores each on one core."""


async def import_file(
    settings: Settings, path: str, plural: str, author: int, *, ignore_unknown: bool = False
) -> int:
    """Imports what is not there yet, and says so. Exit status 1: lines were refused."""
    kind = BY_PLURAL[plural]
    caller = replace(EVERYBODY, id=author)
    with opened_file(path) as (file, size):
        async with opened(settings) as (store, location), bulk(store, kind, caller) as way, tasks() as start:
            print(f"Importing into {location}", file=sys.stderr)
            progress, total = Progress(sys.stderr, size), Outcome()
            read_rows = partial(read, kind=kind, site=store.site, ignore_unknown=ignore_unknown)
            parts = ahead(batches(file, kind, settings.max_body), way, read_rows, start)
            async for end, outcome in stored(parts, way, start):
                for line in told(outcome):
                    progress.say(line)
                total += outcome
                progress.show(end, total.imported + total.there + len(total.refused))
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


class Start(Protocol):
    """Starts work beside other work."""

    def __call__(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]: ...


@asynccontextmanager
async def tasks() -> AsyncIterator[Start]:
    """Starts work beside other work, and ends what is under way when there is nothing to be done with it."""
    under_way: set[asyncio.Task[Any]] = set()

    def start(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        under_way.add(task)
        task.add_done_callback(under_way.discard)
        return task

    try:
        yield start
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


async def stored(parts: AsyncIterator[Part], way: Bulk, start: Start) -> AsyncIterator[tuple[int, Outcome]]:
    """Stores a few parts at a time; tells in their order where each ends and what became of it."""
    under_way: deque[tuple[Part, asyncio.Task[Outcome]]] = deque()

    async def first() -> tuple[int, Outcome]:
        part, storing = under_way.popleft()
        return part.end, part.outcome + await storing

    async for part in parts:
        under_way.append((part, start(way.store(part.rows))))
        if len(under_way) == AT_ONCE:
            yield await first()
    while under_way:
        yield await first()


async def ahead(
    batches: Iterator[Batch], way: Bulk, read_rows: ReadRows, start: Start
) -> AsyncIterator[Part]:
    """Reads and checks the next lines while the last ones are being stored."""
    coming = start(read_part(batches, way, read_rows))
    while part := await coming:
        coming = start(read_part(batches, way, read_rows))
        yield part


async def read_part(batches: Iterator[Batch], way: Bulk, read_rows: ReadRows) -> Part | None:
    batch = await asyncio.to_thread(next, batches, None)
    if batch is None:
        return None
    known = await way.receipts.known(line.mark for line in batch.lines)
    fresh = [line for line in batch.lines if line.mark not in known]
    rows, refused = await asyncio.to_thread(read_rows, fresh)
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
