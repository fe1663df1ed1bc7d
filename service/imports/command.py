"""`kalends import`: imports records from a file, an address or a site."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from io import BufferedReader
from typing import Any, NamedTuple

from config import Settings
from schemas.caller import Caller, Role
from service.database import opened
from service.imports.addresses import open_address
from service.imports.batches import batches
from service.imports.fetching import fetcher
from service.imports.imported import ImportedRecords
from service.imports.item import Source, SourceError
from service.imports.ndjson.command import import_lines
from service.imports.ndjson.export_source import ExportSource
from service.imports.opening import opened_file, recognized
from service.imports.options import ImportOptions
from service.imports.site.source import SiteSource
from service.imports.storing import ItemImporter
from service.imports.writing import DryRun, RecordWriter, Writer
from service.progress import Progress
from service.site import site_of
from service.store import Store


class Opened(NamedTuple):
    """An open source, or a file with NDJSON in the form that `POST` accepts, and the size of the file."""

    source: Source | None
    file: BufferedReader[Any]
    size: int


async def import_source(settings: Settings, options: ImportOptions) -> int:
    """Import what has not been imported yet, and print a summary; return 1 if records were refused."""
    async with opened_source(settings, options) as found:
        if found.source is None:
            return await import_lines(settings, found.file, found.size, options)
        return await import_items(settings, found.source, options)


@asynccontextmanager
async def opened_source(settings: Settings, options: ImportOptions) -> AsyncIterator[Opened]:
    site = site_of(settings)
    if options.is_address:
        async with fetcher(options.user, options.password) as fetch:
            source, file = await open_address(fetch, options, site)
            yield Opened(source, file, 0)
    else:
        with opened_file(options.source) as (file, size):
            yield Opened(recognized(file, size, options, site), file, size)


async def import_items(settings: Settings, source: Source, options: ImportOptions) -> int:
    async with opened(settings) as (store, location):
        print(f"{options.activity} {location}", *source.notices, sep="\n", file=sys.stderr)
        await refuse_itself(source, store)
        progress = Progress(sys.stderr, source.size)
        importer = ItemImporter(store, await writer_for(source, store, options), progress.print_line)
        try:
            await store_all(source, importer, progress)
        finally:
            progress.clear()
            print(*importer.outcome.lines(), sep="\n")
    return 1 if importer.outcome.has_refused else 0


async def refuse_itself(source: Source, store: Store) -> None:
    """Raise SourceError for the service of this very database: all its records would be there twice."""
    if isinstance(source, SiteSource):
        log = await source.change_log()
        if log and log == (await store.log.checkpoint()).log:
            raise SourceError(f"{source.name} shows this very database: there is nothing to import")


async def writer_for(source: Source, store: Store, options: ImportOptions) -> Writer:
    export = source if isinstance(source, ExportSource) else None
    is_origin = export is not None and export.origin == await ImportedRecords(store.database).origin()
    if options.dry_run:
        return DryRun(store, is_origin=is_origin)
    if export:
        await ImportedRecords(store.database).begin_copy(export.instance)
    caller = Caller(options.author, Role.ADMIN, bypasses_passwords=True)
    return RecordWriter(store, caller, is_origin=is_origin)


async def store_all(source: Source, importer: ItemImporter, progress: Progress) -> None:
    kinds: set[str] = set()
    try:
        async with aclosing(batches(source.items())) as found:
            async for batch in found:
                if batch[0].kind.name not in kinds:  # what these link to is complete by now
                    kinds.add(batch[0].kind.name)
                    await importer.retry_deferred()
                await importer.store(batch)
                progress.size = source.size
                progress.show(source.position, importer.outcome.total)
    except SourceError:
        await importer.retry_deferred()
        raise
    await importer.retry_deferred(refuse_rest=True)
