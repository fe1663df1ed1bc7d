"""Reads collections as they were at one moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import sleep
from typing import Any

import pymongo
from bson import Timestamp
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo.command_cursor import CommandCursor
from pymongo.database import Database
from pymongo.errors import OperationFailure

from service.backup.format import MAX_DOCUMENTS, BackupError, Batch
from service.mongo.client import Row
from service.mongo.write_clock import read_clock

BATCH_BYTES = 4 << 20
READ_SECONDS = 120
"""Time limit of one command: a thousand large documents may come from a slow disk."""
UNAVAILABLE, TOO_OLD = 246, 239
"""The server's error codes: a collection was created or renamed after the moment; the moment is not kept any
more."""
ATTEMPTS, PAUSE_SECONDS = 20, 0.5
RAW: CodecOptions[Any] = CodecOptions(document_class=RawBSONDocument)


class Snapshot:
    """All documents of some collections at one moment, and those of `meta`."""

    def __init__(self, database: Database[Row], names: Sequence[str]) -> None:
        for attempt in range(ATTEMPTS):
            try:
                self._open(database, names)
            except OperationFailure as error:
                if error.code != UNAVAILABLE or attempt == ATTEMPTS - 1:
                    raise
                sleep(PAUSE_SECONDS)
            else:
                return

    def _open(self, database: Database[Row], names: Sequence[str]) -> None:
        """Open all cursors at once: MongoDB may refuse the moment for one of the collections."""
        with pymongo.timeout(READ_SECONDS):
            at = read_clock(database).time
            self.meta = {row["_id"]: row for row in self._find(database, "meta", at)}
            raw = database.with_options(codec_options=RAW)
            self._cursors = {name: self._find(raw, name, at) for name in names}

    def _find(self, database: Database[Any], name: str, at: Timestamp) -> CommandCursor[Any]:
        concern, options = {"level": "snapshot", "atClusterTime": at}, database.codec_options
        return database.cursor_command(
            "find", name, batchSize=MAX_DOCUMENTS, readConcern=concern, codec_options=options
        )

    def batches(self) -> Iterator[Batch]:
        """All documents (blocking)."""
        for name, cursor in self._cursors.items():
            while documents := _next(cursor):
                yield Batch(name, documents)


def _next(cursor: CommandCursor[RawBSONDocument]) -> list[RawBSONDocument]:
    try:
        with pymongo.timeout(READ_SECONDS):
            return list(_limited(cursor))
    except OperationFailure as error:
        if error.code != TOO_OLD:
            raise
        raise BackupError(
            "the dump took longer than MongoDB keeps past states: increase its parameter "
            "minSnapshotHistoryWindowInSeconds, or dump to a faster disk"
        ) from None


def _limited(cursor: CommandCursor[RawBSONDocument]) -> Iterator[RawBSONDocument]:
    size = 0
    for number, document in enumerate(cursor, 1):
        yield document
        size += len(document.raw)
        if number == MAX_DOCUMENTS or size >= BATCH_BYTES:
            return
