"""The MongoDB client, with explicit read and write concerns and timeouts."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache
from time import monotonic
from typing import Any, TypeVar

import pymongo
from bson import Timestamp
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.errors import BSONError
from motor.motor_asyncio import (
    AsyncIOMotorClient,
    AsyncIOMotorClientSession,
    AsyncIOMotorCollection,
    AsyncIOMotorDatabase,
)
from pymongo.command_cursor import CommandCursor
from pymongo.errors import ConfigurationError, InvalidURI, PyMongoError
from pymongo.monitoring import CommandListener

from config import SettingError

log = logging.getLogger("kalends.mongodb")
APP_NAME = "kalends"
"""What MongoDB calls this client."""
URI_FORM = (
    "it must have the form mongodb://user:password@host:27017/?replicaSet=rs0 (user and password may be left "
    "out), with special characters in user and password percent-encoded, such as %2F for / and %40 for @"
)
DUPLICATE = 11000
"""The server's error code for a duplicate key."""
HISTORY_LOST = 286
"""The server's error code for a change stream that would begin before the oplog."""
FIRST_BATCH = 10_000
"""Rows that an aggregation returns at once; by default MongoDB returns 101, and the rest on request."""
HEARTBEAT_MS, HEARTBEAT_TIMEOUT_MS = 500, 1500
"""A member that answers no heartbeat for the sum of these two, because its host is frozen or cut off, counts
as down, and the driver closes the connections that wait for it."""
CLOSE_STREAM_SECONDS, CLOSE_CLIENT_SECONDS = 0.2, 0.5
MAX_TRANSACTION_SECONDS = 20.0
"""How long a transaction that conflicts with others is repeated."""
MAX_TRANSACTION_PAUSE_SECONDS = 0.1
Row = dict[str, Any]
Client = AsyncIOMotorClient[Row]
Database = AsyncIOMotorDatabase[Row]
Collection = AsyncIOMotorCollection[Row]
Session = AsyncIOMotorClientSession
Result = TypeVar("Result")
LENIENT: CodecOptions[Row] = CodecOptions(
    datetime_conversion=DatetimeConversion.DATETIME_AUTO, unicode_decode_error_handler="replace"
)
"""How to read what other programs may have written: a value that is not valid does not stop the reader."""
MALFORMED = (KeyError, TypeError, AttributeError, ValueError, OverflowError, BSONError)
"""What code raises that reads documents of another form than it writes."""


def collections(database: Database) -> Callable[[str], Collection]:
    """Return a function from names to collections. It caches them: Motor is slow to create the objects."""
    return cache(database.__getitem__)


async def find(collection: Collection, query: Mapping[str, Any], shown: Mapping[str, int]) -> list[Row]:
    """Find all matching records, in a single call to a thread; Motor's cursors need several."""
    return await asyncio.to_thread(lambda: list(collection.delegate.find(query, shown)))


async def aggregate(collection: Collection, pipeline: list[Row], **options: Any) -> list[Row]:
    """Run an aggregation and return all rows, in a single call to a thread."""
    options = {"batchSize": FIRST_BATCH, **options}
    return await asyncio.to_thread(lambda: list(collection.delegate.aggregate(pipeline, **options)))


async def batches_by_id(
    collection: Collection, ids: Mapping[str, Any], size: int, shown: Mapping[str, int] | None = None
) -> AsyncIterator[list[Row]]:
    """Read documents in the order of their ids, in batches, each with a query of its own: without the limit
    MongoDB would send up to 16 MB at a time."""
    query = {"_id": {**ids}}
    while (
        batch := await collection.find(query, shown).sort("_id", 1).limit(size).batch_size(size).to_list(size)
    ):
        yield batch
        query = {"_id": {**ids, "$gt": batch[-1]["_id"]}}


async def in_transaction(
    database: Database, work: Callable[[Session], Coroutine[Any, Any, Result]]
) -> Result:
    """Run the work in a transaction; after a conflict it is repeated, so it must have no other effects.
    It goes on if the caller is cancelled: the driver's thread goes on, too, and after the transaction was
    aborted it would write outside of it."""
    task = asyncio.create_task(_in_transaction(database, work))
    _transactions.add(task)
    task.add_done_callback(_ended)
    return await asyncio.shield(task)


_transactions: set[asyncio.Task[Any]] = set()
"""The transactions under way, so that they can end before the client is closed."""


def _ended(transaction: asyncio.Task[Any]) -> None:
    _transactions.discard(transaction)
    if not transaction.cancelled():
        transaction.exception()  # mark it as retrieved: perhaps no caller is left


async def finish_transactions(seconds: float) -> None:
    """Wait for the transactions under way. Those that take longer fail when the client is closed."""
    loop = asyncio.get_running_loop()
    if own := [one for one in _transactions if one.get_loop() is loop]:
        await asyncio.wait(own, timeout=seconds)


async def _in_transaction(
    database: Database, work: Callable[[Session], Coroutine[Any, Any, Result]]
) -> Result:
    """Motor's `with_transaction` repeats the work without a pause, and not at all if the commit fails."""
    deadline, pause = monotonic() + MAX_TRANSACTION_SECONDS, 0.001
    async with await database.client.start_session() as session:
        while True:
            is_done = False
            try:
                async with session.start_transaction():
                    result, is_done = await work(session), True
            except ConfigurationError:
                replace_connections(database.client.delegate)
                if is_done:
                    await session.commit_transaction()  # once more: it has the same effect
                elif monotonic() > deadline:
                    raise
            except PyMongoError as error:
                if not error.has_error_label("TransientTransactionError") or monotonic() > deadline:
                    raise
                is_done = False
            if is_done:
                return result
            await asyncio.sleep(random.uniform(0, pause))  # noqa: S311 - not for secrets
            pause = min(2 * pause, MAX_TRANSACTION_PAUSE_SECONDS)


def replace_connections(client: pymongo.MongoClient[Row]) -> None:
    """Open new connections: the driver refuses sessions for ever on one to a member that steps down."""
    log.warning("a connection to MongoDB refuses sessions; opening new ones")
    for server in list(client._topology._servers.values()):
        server.pool.reset_without_pause()


def connect(uri: str, listeners: Sequence[CommandListener] = ()) -> Client:
    """Create a client with majority read and write concern; raises SettingError for an invalid URI."""
    try:
        return _client(uri, listeners)
    except (InvalidURI, ValueError):  # what they say may contain a part of the password
        raise SettingError(f"KALENDS_MONGODB_URI cannot be used: {URI_FORM}") from None
    except ConfigurationError as error:
        raise SettingError(f"KALENDS_MONGODB_URI cannot be used: {error}") from None


def _client(uri: str, listeners: Sequence[CommandListener]) -> Client:
    return AsyncIOMotorClient(
        uri,
        w="majority",
        readConcernLevel="majority",
        readPreference="primary",  # whatever the URI says: secondaries may lag behind what was confirmed
        retryWrites=True,
        retryReads=True,
        maxPoolSize=50,
        waitQueueTimeoutMS=2000,
        heartbeatFrequencyMS=HEARTBEAT_MS,
        connectTimeoutMS=HEARTBEAT_TIMEOUT_MS,
        timeoutMS=10000,
        appname=APP_NAME,
        event_listeners=listeners,
    )


@lru_cache(100)
def utc(time: Timestamp) -> datetime:
    return time.as_datetime().replace(tzinfo=None)


def close_stream(stream: CommandCursor[Row] | None) -> None:
    """Close a change stream (blocking). Its server may be down: the driver would wait for it to return."""
    if stream:
        with pymongo.timeout(CLOSE_STREAM_SECONDS):
            stream.close()


def close_client(client: Client) -> None:
    """Close a client (blocking). It tells its server which sessions have ended: if that is down or frozen,
    the driver would wait 30 seconds for it."""
    with pymongo.timeout(CLOSE_CLIENT_SECONDS):
        client.close()
