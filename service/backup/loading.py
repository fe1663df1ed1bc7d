"""Loads a dump beside the records of a database: into collections that are renamed later."""

from __future__ import annotations

import re
import secrets
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
"""The name of a collection into which a dump is loaded begins with it, followed by the id of the restore: one
that was stopped for long, so that another one has begun, does not touch what that one loads."""
RAW = CodecOptions(document_class=RawBSONDocument)


def new_prefix() -> str:
    return f"{PREFIX}{secrets.token_hex(4)}."


async def load(database: Database, prefix: str, reader: DumpReader, names: Iterable[str], size: int) -> None:
    """Load all documents. The collections exist even if they are empty: each replaces another one."""
    await drop_loaded(database)
    for name in (*names, LOG):
        await database.create_collection(prefix + name)
    progress = Progress(sys.stderr, size)
    async with aclosing(read_ahead(reader.batches())) as batches:
        async for batch in batches:
            await complete_in_thread(insert, database.delegate, prefix, batch)
            progress.show(reader.position, reader.counts.total())
    progress.clear()


def insert(database: BlockingDatabase[Row], prefix: str, batch: Batch) -> None:
    collection = database[prefix + batch.collection].with_options(codec_options=RAW)
    with pymongo.timeout(INDEX_BUILD_SECONDS):
        collection.insert_many(batch.documents, ordered=True)


async def create_loaded_indexes(database: Database, prefix: str, names: Iterable[str]) -> None:
    with pymongo.timeout(INDEX_BUILD_SECONDS):
        for name in (*names, LOG):
            if models := INDEXES.get(name):
                await database[prefix + name].create_indexes(models)


async def count_loaded_events(database: Database, prefix: str) -> None:
    """Count the events of venues, organizers and terms: what was changed shortly before the dump was not
    counted in it."""
    with pymongo.timeout(RECOUNT_SECONDS):
        counted = Counted(database, await snapshot_time(database), prefix)
        await forget_times(counted)
        await count_events(counted, StepProgress().show)


async def drop_loaded(database: Database, prefix: str = PREFIX) -> None:
    """Drop what the restore with this prefix has loaded, by default what any restore has left."""
    is_loaded = {"name": {"$regex": f"^{re.escape(prefix)}"}}
    for name in await database.list_collection_names(filter=is_loaded):
        await database.drop_collection(name)
