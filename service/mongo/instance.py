"""The identity of a database: a random UUID that it gets when it is set up, and keeps."""

from __future__ import annotations

from uuid import UUID, uuid4

from schemas.errors import Unavailable
from service.mongo.client import Database

INSTANCE = {"_id": "instance"}


async def create_instance(database: Database) -> None:
    """Give the database its identity if it has none yet."""
    if await database["meta"].find_one(INSTANCE) is None:
        created = {"$setOnInsert": {"uuid": str(uuid4())}}
        await database["meta"].update_one(INSTANCE, created, upsert=True)


async def read_instance(database: Database) -> UUID:
    if (found := await database["meta"].find_one(INSTANCE)) is None:
        raise Unavailable  # the database is being restored; the next start creates one
    return UUID(found["uuid"])


async def read_origin(database: Database) -> UUID:
    """Identifies the database where the ids were assigned. Unlike its identity, no other database has it."""
    found = await database["meta"].find_one(INSTANCE) or {}
    return UUID(found["origin"]) if "origin" in found else await read_instance(database)


async def adopt_instance(database: Database, uuid: UUID) -> None:
    """Give an empty database the identity of the one whose records are about to be imported: identifiers in
    feeds stay the same."""
    adopted = {"$set": {"uuid": str(uuid), "origin": str(await read_origin(database))}}
    await database["meta"].update_one(INSTANCE, adopted)
