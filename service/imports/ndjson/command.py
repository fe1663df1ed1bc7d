"""Imports NDJSON in the form that `POST` accepts: one record of the same kind on each line."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, BinaryIO, Protocol, TypeVar

from config import Settings
from schemas import BY_PLURAL
from schemas.caller import EVERYBODY
from schemas.errors import Problem
from service.database import opened
from service.imports.imported import ImportedRecords
from service.imports.ndjson.lines import ImportLine, ImportRow, LineBatch, parse_lines, read_batches
from service.imports.ndjson.rows import LineResults, check_rows, import_rows
from service.imports.options import ImportOptions
from service.imports.outcome import Outcome
from service.progress import Progress

T = TypeVar("T")
FindKnown = Callable[[Sequence[bytes]], Awaitable[Collection[bytes]]]
"""The fingerprints of lines that were imported before."""
ReadRows = Callable[[list[ImportLine]], tuple[list[ImportRow], dict[int, Problem]]]
StoreRows = Callable[[list[ImportRow]], Coroutine[Any, Any, LineResults]]
MAX_CONCURRENT_BATCHES = 3
"""Batches stored concurrently; MongoDB uses one core for each."""


async def import_lines(settings: Settings, file: BinaryIO, size: int, options: ImportOptions) -> int:
    """Import the lines that have not been imported yet, and print a summary; return 1 if any were refused."""
    kind = BY_PLURAL[options.kind]
    caller = replace(EVERYBODY, id=options.author)
    async with opened(settings) as (store, location), tasks() as start:
        print(f"{options.activity} {location}", file=sys.stderr)
        progress = Progress(sys.stderr, size)
        outcome = Outcome(progress.print_line)
        read_rows = partial(parse_lines, kind=kind, site=store.site, ignore_unknown=options.ignore_unknown)
        prepared_batches = read_ahead(
            read_batches(file, kind, settings.max_body),
            partial(ImportedRecords(store.database).find, kind),
            read_rows,
            start,
        )
        store_rows = (
            partial(check_rows, store.site, kind)
            if options.dry_run
            else partial(import_rows, store.creator, kind, caller)
        )
        async for end, results in store_batches(prepared_batches, store_rows, start):
            for number, result in sorted(results.items()):
                outcome.add(kind, f"line {number}", result)
            progress.show(end, outcome.total)
    progress.clear()
    print(*outcome.lines(), sep="\n")
    return 1 if outcome.has_refused else 0


@dataclass
class PreparedBatch:
    """Rows to be stored, the results of the other lines of their batch, and the file offset of its end."""

    rows: list[ImportRow]
    results: LineResults
    end: int


class StartTask(Protocol):
    """Starts a background task."""

    def __call__(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]: ...


@asynccontextmanager
async def tasks() -> AsyncIterator[StartTask]:
    """Yield a function that starts background tasks; those still running on exit are cancelled."""
    running: set[asyncio.Task[Any]] = set()

    def start(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        running.add(task)
        task.add_done_callback(running.discard)
        return task

    try:
        yield start
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def store_batches(
    prepared_batches: AsyncIterator[PreparedBatch], store_rows: StoreRows, start: StartTask
) -> AsyncIterator[tuple[int, LineResults]]:
    """Store up to MAX_CONCURRENT_BATCHES at once; yield the end offset and results of each, in order."""
    running: deque[tuple[PreparedBatch, asyncio.Task[LineResults]]] = deque()

    async def oldest() -> tuple[int, LineResults]:
        prepared, storing = running.popleft()
        return prepared.end, prepared.results | await storing

    async for prepared in prepared_batches:
        running.append((prepared, start(store_rows(prepared.rows))))
        if len(running) == MAX_CONCURRENT_BATCHES:
            yield await oldest()
    while running:
        yield await oldest()


async def read_ahead(
    batches: Iterator[LineBatch], find_known: FindKnown, read_rows: ReadRows, start: StartTask
) -> AsyncIterator[PreparedBatch]:
    """Read and validate the next batch while the previous ones are being stored."""
    upcoming = start(prepare_batch(batches, find_known, read_rows))
    while prepared := await upcoming:
        upcoming = start(prepare_batch(batches, find_known, read_rows))
        yield prepared


async def prepare_batch(
    batches: Iterator[LineBatch], find_known: FindKnown, read_rows: ReadRows
) -> PreparedBatch | None:
    batch = await asyncio.to_thread(next, batches, None)
    if batch is None:
        return None
    known = await find_known([line.fingerprint for line in batch.lines])
    new_lines = [line for line in batch.lines if line.fingerprint not in known]
    rows, refused = await asyncio.to_thread(read_rows, new_lines)
    same: LineResults = {line.number: "same" for line in batch.lines if line.fingerprint in known}
    return PreparedBatch(rows, same | refused, batch.end)
