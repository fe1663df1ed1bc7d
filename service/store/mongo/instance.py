"""The identity of a database: a random UUID that it gets when it is set up, and keeps."""

from __future__ import annotations

from uuid import UUID, uuid4

from schemas.errors import Unavailable
from service.store.mongo.client import Database

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


async def adopt_instance(database: Database, uuid: UUID) -> None:
    """Give an empty database the identity of the one whose records are about to be imported: identifiers in
    feeds stay the same."""
    adopted = {"$set": {"uuid": str(uuid), "is_adopted": True}}
    await database["meta"].update_one(INSTANCE, adopted, upsert=True)


async def is_origin(database: Database, uuid: UUID) -> bool:
    """Whether records with this identity were created in this database."""
    found = await database["meta"].find_one(INSTANCE)
    return found is not None and found["uuid"] == str(uuid) and not found.get("is_adopted")
