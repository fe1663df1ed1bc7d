"""`kalends import`: import records from a file with one JSON object per line."""

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
from service.store.records.drafting import Row
from service.store.records.importing import Bulk, Outcome, bulk

T = TypeVar("T")
ReadRows = Callable[[list[Line]], tuple[list[Row], dict[int, Problem]]]
AT_ONCE = 3
"""Batches stored concurrently; MongoDB uses one core for each."""


async def import_file(
    settings: Settings, path: str, plural: str, author: int, *, ignore_unknown: bool = False
) -> int:
    """Import the lines that have not been imported yet, and print a summary; return 1 if any were refused."""
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
    """The file and its size; 0 for standard input, whose size is unknown."""
    if path == "-":
        yield sys.stdin.buffer, 0
        return
    try:
        size = Path(path).stat().st_size
        file = Path(path).open("rb")  # noqa: SIM115 - errors while reading must not be caught here
    except OSError as error:
        raise SettingError(f"cannot read {path}: {error.strerror}") from None
    with file:
        yield file, size


@dataclass
class Part:
    """Rows to be stored, the outcome of the other lines of their batch, and the file offset of its end."""

    rows: list[Row]
    outcome: Outcome
    end: int


class Start(Protocol):
    """Starts a background task."""

    def __call__(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]: ...


@asynccontextmanager
async def tasks() -> AsyncIterator[Start]:
    """Yield a function that starts background tasks; those still running on exit are cancelled."""
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
    """Store up to AT_ONCE parts concurrently; yield the end offset and outcome of each, in order."""
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
    """Read and validate the next batch while the previous ones are being stored."""
    coming = start(read_part(batches, way, read_rows))
    while part := await coming:
        coming = start(read_part(batches, way, read_rows))
        yield part


async def read_part(batches: Iterator[Batch], way: Bulk, read_rows: ReadRows) -> Part | None:
    batch = await asyncio.to_thread(next, batches, None)
    if batch is None:
        return None
    known = await way.ledger.known(line.mark for line in batch.lines)
    fresh = [line for line in batch.lines if line.mark not in known]
    rows, refused = await asyncio.to_thread(read_rows, fresh)
    return Part(rows, Outcome(there=len(known), refused=refused), batch.end)


def told(outcome: Outcome) -> Iterator[str]:
    """Error messages for each refused line, one per field."""
    for number, problem in sorted(outcome.refused.items()):
        params = problem.data.get("params")
        said = (
            [f"{name}: {text}" for name, text in params.items()]
            if isinstance(params, dict)
            else [problem.text]
        )
        yield from (f"line {number}: {text}" for text in said)
