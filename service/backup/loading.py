"""Loads a dump beside the records of a database: into collections that are renamed later."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from contextlib import aclosing

import pymongo
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo.database import Database as BlockingDatabase

from service.backup.format import Batch
from service.backup.reader import DumpReader
from service.backup.reading_ahead import read_ahead
from service.backup.stopping import complete_in_thread
from service.changes.log_rows import LOG
from service.commands.migrating import StepProgress
from service.migrations.recount import RECOUNT_SECONDS, Counted, count_events, forget_times, snapshot_time
from service.mongo.client import Database, Row
from service.mongo.indexes import INDEX_BUILD_SECONDS, INDEXES
from service.progress import Progress

PREFIX = "restore."
"""The name of a collection into which a dump is loaded begins with it."""
RAW = CodecOptions(document_class=RawBSONDocument)


async def load(database: Database, reader: DumpReader, names: Iterable[str], size: int) -> None:
    """Load all documents. The collections exist even if they are empty: each replaces another one."""
    await drop_loaded(database)
    for name in (*names, LOG):
        await database.create_collection(PREFIX + name)
    progress = Progress(sys.stderr, size)
    async with aclosing(read_ahead(reader.batches())) as batches:
        async for batch in batches:
            await complete_in_thread(insert, database.delegate, batch)
            progress.show(reader.position, reader.counts.total())
    progress.clear()


def insert(database: BlockingDatabase[Row], batch: Batch) -> None:
    collection = database[PREFIX + batch.collection].with_options(codec_options=RAW)
    with pymongo.timeout(INDEX_BUILD_SECONDS):
        collection.insert_many(batch.documents, ordered=True)


async def create_loaded_indexes(database: Database, names: Iterable[str]) -> None:
    with pymongo.timeout(INDEX_BUILD_SECONDS):
        for name in (*names, LOG):
            if models := INDEXES.get(name):
                await database[PREFIX + name].create_indexes(models)


async def count_loaded_events(database: Database) -> None:
    """Count the events of venues, organizers and terms: what was changed shortly before the dump was not
    counted in it."""
    with pymongo.timeout(RECOUNT_SECONDS):
        counted = Counted(database, await snapshot_time(database), PREFIX)
        await forget_times(counted)
        await count_events(counted, StepProgress().show)


async def drop_loaded(database: Database) -> None:
    """Drop what a restore that did not end has left."""
    is_loaded = {"name": {"$regex": f"^{re.escape(PREFIX)}"}}
    for name in await database.list_collection_names(filter=is_loaded):
        await database.drop_collection(name)
