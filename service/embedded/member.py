"""Set up the only member of the replica set: initiate it, wait for the primary, create the user."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

from pymongo.errors import ConnectionFailure, OperationFailure

from service.embedded.directory import SOCKET_HOST, USER, Directory
from service.embedded.errors import EmbeddedError
from service.embedded.program import REPLICA_SET
from service.mongo.client import Client, close_client, connect

UNAUTHORIZED = 13
AUTHENTICATION_FAILED = 18
ALREADY_INITIALIZED = 23
NOT_YET_INITIALIZED = 94
# All databases, indexes, profiler and server statistics; no user management, shutdown or configuration.
ROLES = ["readWriteAnyDatabase", "dbAdminAnyDatabase", "clusterMonitor"]


async def became_ready(directory: Directory) -> bool:
    """Take the next setup step; true once mongod is primary and the service's user can authenticate."""
    if not await _listening(directory):
        return False
    try:
        with _connected(_anonymous_uri(directory)) as client:
            if not await _became_primary(client):
                return False
            await _create_user(client, directory)
        return await _can_authenticate(directory)
    except ConnectionFailure:
        return False
    except OperationFailure as error:
        raise EmbeddedError(f"mongod cannot be set up: {(error.details or {}).get('errmsg')}") from error


async def _listening(directory: Directory) -> bool:
    # The driver checks an unavailable server only twice a second; this can be polled at any rate.
    try:
        _, writer = await asyncio.open_unix_connection(directory.socket)
        writer.close()
        await writer.wait_closed()
    except OSError:
        return False
    return True


def _anonymous_uri(directory: Directory) -> str:
    """The URI for a client without credentials."""
    return f"mongodb://{quote(str(directory.socket), safe='')}/?directConnection=true"


@contextmanager
def _connected(uri: str) -> Iterator[Client]:
    client = connect(uri)
    try:
        yield client
    finally:
        close_client(client)


async def _became_primary(client: Client) -> bool:
    hello = await client.admin.command("hello")
    if hello.get("isreplicaset"):
        await _initiate(client)
    return bool(hello["isWritablePrimary"])


async def _initiate(client: Client) -> None:
    members = [{"_id": 0, "host": SOCKET_HOST}]
    try:
        await client.admin.command("replSetInitiate", {"_id": REPLICA_SET, "members": members})
    except OperationFailure as error:
        # On a restart, mongod is merely still loading its configuration.
        if error.code not in {UNAUTHORIZED, ALREADY_INITIALIZED, NOT_YET_INITIALIZED}:
            raise


async def _create_user(client: Client, directory: Directory) -> None:
    """MongoDB's localhost exception allows this only until the first user exists."""
    password = directory.password.read_text().strip()
    concern = {"w": "majority"}
    try:
        await client.admin.command("createUser", USER, pwd=password, roles=ROLES, writeConcern=concern)
    except OperationFailure as error:
        if error.code != UNAUTHORIZED:
            raise


async def _can_authenticate(directory: Directory) -> bool:
    with _connected(directory.uri(directory.socket)) as client:
        try:
            await client.admin.command("ping")
        except OperationFailure as error:
            if error.code != AUTHENTICATION_FAILED:
                raise
            raise EmbeddedError(
                f"{directory.password} is not the password of {directory.db}: restore the original file"
            ) from error
    return True
