"""The way to MongoDB: one client with explicit concerns and time limits."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from motor.motor_asyncio import AsyncIOMotorClient, AsyncIOMotorCollection, AsyncIOMotorDatabase
from pymongo.errors import ConfigurationError, InvalidURI

from config import SettingError

DUPLICATE = 11000
"""The server's code for a key that is taken."""
Client = AsyncIOMotorClient[dict[str, Any]]
Database = AsyncIOMotorDatabase[dict[str, Any]]
Collection = AsyncIOMotorCollection[dict[str, Any]]


def collections(database: Database) -> Callable[[str], Collection]:
    """Gives the collections of a database by name. Each is made once: the driver takes its time to do so."""
    return cache(database.__getitem__)


def connect(uri: str) -> Client:
    """A client whose writes are acknowledged by a majority; an address of a set's member may say more."""
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
