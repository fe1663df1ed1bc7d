"""`kalends dump`: writes the database as it is at one moment to a file."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing
from datetime import UTC, datetime
from typing import IO, NamedTuple

from bson import Timestamp

from config import Settings
from config.version import VERSION
from service.backup.contents import CONTENTS, SECRETS, Header
from service.backup.files import STANDARD_OUTPUT, created, refuse_existing
from service.backup.format import BackupError, DumpWriter
from service.backup.reading_ahead import read_ahead
from service.backup.snapshot import Snapshot
from service.backup.stopping import stop_on_request
from service.changes.feed import CHECKPOINT
from service.changes.restores import MARKER, RestoreUnderWay, refuse_restore
from service.database import Location, connected, located
from service.migrations import FORM, stored_form
from service.mongo.client import Database
from service.progress import Progress


class DumpOptions(NamedTuple):
    """The options of `kalends dump`."""

    path: str
    force: bool = False
    with_tokens: bool = False


async def dump_database(settings: Settings, options: DumpOptions) -> None:
    """Write a dump, and print what it contains."""
    refuse_existing(options.path, force=options.force)
    stop_on_request()
    async with located(settings, must_exist=True) as location, connected(location) as database:
        await refuse_unusable(database, location)
        print(f"Dumping {location}", file=sys.stderr)
        with created(options.path, force=options.force) as file:
            written = await write_dump(database, file, with_tokens=options.with_tokens)
    where = "standard output" if options.path == STANDARD_OUTPUT else options.path
    print(f"{written.counts.total()} documents in {where}", file=sys.stderr)


async def refuse_unusable(database: Database, location: Location) -> None:
    """Raise if there is nothing to dump, or not the form that this version knows."""
    await refuse_restore(database)
    if (form := await stored_form(database)) == 0:
        raise BackupError(f"there is nothing to dump: {location} has never been used")
    if form != FORM:
        raise BackupError(f"{location} was made by an older version: run `kalends migrate` first")


async def write_dump(database: Database, file: IO[bytes], *, with_tokens: bool = False) -> DumpWriter:
    names = [*CONTENTS, *(SECRETS if with_tokens else ())]
    total = sum([await database[name].estimated_document_count() for name in names])
    snapshot = await asyncio.to_thread(Snapshot, database.delegate, names)
    writer = DumpWriter(file, header_of(snapshot, names)._asdict())
    progress, done = Progress(sys.stderr, total), 0
    async with aclosing(read_ahead(snapshot.batches())) as batches:
        async for batch in batches:
            await asyncio.to_thread(writer.add, batch)
            done += len(batch.documents)
            progress.show(done, done)
    writer.end()
    progress.clear()
    return writer


def header_of(snapshot: Snapshot, names: list[str]) -> Header:
    meta, now = snapshot.meta, datetime.now(UTC)
    if MARKER in meta:  # it has begun since the database was checked
        raise RestoreUnderWay
    if not {"form", "instance", CHECKPOINT} <= meta.keys():
        raise BackupError("a service is just setting up the database: try again")
    logged_until = meta[CHECKPOINT].get("at")
    if not isinstance(logged_until, Timestamp):
        raise BackupError("the checkpoint of the change log is damaged: run `kalends doctor --repair`")
    return Header(meta["form"]["number"], VERSION, now, logged_until, meta["instance"], names)
