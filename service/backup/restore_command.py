"""`kalends restore`: checks a whole dump, then puts its records into a database."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing
from typing import IO, NamedTuple

from config import Settings
from service.backup.contents import NOT_DUMPED, Header, parse_header
from service.backup.files import opened
from service.backup.format import BackupError
from service.backup.reader import DumpReader
from service.backup.reading_ahead import read_ahead
from service.backup.restoring import Restore
from service.backup.stopping import stop_on_request
from service.database import connected, located
from service.migrations import FORM
from service.mongo.write_clock import read_clock
from service.progress import Progress


class RestoreOptions(NamedTuple):
    """The options of `kalends restore`."""

    path: str
    replace: bool = False


async def restore_database(settings: Settings, options: RestoreOptions) -> None:
    """Check the whole file, then restore it, and print what was restored."""
    stop_on_request()
    with opened(options.path) as (file, size):
        header = await checked(file, options.path, size)
        async with located(settings) as location, connected(location) as database:
            await asyncio.to_thread(read_clock, database.delegate)  # raises unless it is a replica set
            restore = Restore(database, location, header, replace=options.replace)
            await restore.run(DumpReader(rewound(file), options.path, size), size)


def rewound(file: IO[bytes]) -> IO[bytes]:
    file.seek(0)
    return file


async def checked(file: IO[bytes], path: str, size: int) -> Header:
    """Read a dump to its end; raises BackupError if it is damaged, or of a newer version."""
    print(f"Checking {path}", file=sys.stderr)
    reader, progress = DumpReader(file, path, size), Progress(sys.stderr, size)
    async with aclosing(read_ahead(reader.batches())) as batches:
        async for _ in batches:
            progress.show(reader.position, reader.counts.total())
    progress.clear()
    return usable_header(reader, path)


def usable_header(reader: DumpReader, path: str) -> Header:
    header = parse_header(reader.header)
    if header is None or reader.counts.keys() - header.collections or NOT_DUMPED & set(header.collections):
        raise BackupError(f"{path} is not a dump of Kalends")
    if header.form > FORM:
        raise BackupError(
            f"{path} has the stored form {header.form}, made by Kalends {header.version}; this version "
            f"supports form {FORM}: upgrade Kalends"
        )
    return header
