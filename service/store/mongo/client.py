"""The MongoDB client, with explicit read and write concerns and timeouts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from motor.motor_asyncio import (
    AsyncIOMotorClient,
    AsyncIOMotorClientSession,
    AsyncIOMotorCollection,
    AsyncIOMotorDatabase,
)
from pymongo.errors import ConfigurationError, InvalidURI

from config import SettingError

DUPLICATE = 11000
"""The server's error code for a duplicate key."""
Row = dict[str, Any]
Client = AsyncIOMotorClient[Row]
Database = AsyncIOMotorDatabase[Row]
Collection = AsyncIOMotorCollection[Row]
Session = AsyncIOMotorClientSession


def collections(database: Database) -> Callable[[str], Collection]:
    """Return a function from names to collections. It caches them: Motor is slow to create the objects."""
    return cache(database.__getitem__)


async def find(collection: Collection, query: Mapping[str, Any], shown: Mapping[str, int]) -> list[Row]:
    """Find all matching records, in a single call to a thread; Motor's cursors need several."""
    return await asyncio.to_thread(lambda: list(collection.delegate.find(query, shown)))


async def aggregate(collection: Collection, pipeline: list[Row], **options: Any) -> list[Row]:
    """Run an aggregation and return all rows, in a single call to a thread."""
    return await asyncio.to_thread(lambda: list(collection.delegate.aggregate(pipeline, **options)))


def connect(uri: str) -> Client:
    """Create a client with majority read and write concern; raises SettingError for an invalid URI."""
    try:
        return _client(uri)
    except (ConfigurationError, InvalidURI, ValueError) as error:
        raise SettingError(f"KALENDS_MONGODB_URI cannot be used: {error}") from None


def _client(uri: str) -> Client:
    return AsyncIOMotorClient(
        uri,
        w="majority",
        readConcernLevel="majority",
        retryWrites=True,
        retryReads=True,
        maxPoolSize=50,
        waitQueueTimeoutMS=2000,
        connectTimeoutMS=3000,
        timeoutMS=10000,
        appname="kalends",
    )
