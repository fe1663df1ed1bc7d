"""The category tree: each category stores all its ancestors, and cycles are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.errors import InvalidFields, NotFound, PreconditionFailed, TermExists, not_found
from schemas.kind import Document, Kind
from schemas.language import Text
from service.store.links.references import name_key
from service.store.mongo.client import Client, Database

LOCK = {"_id": "category-tree"}
CIRCLE = Text("A category cannot be its own ancestor.")


async def settle_new(database: Database, kind: Kind, record: Mapping[str, Any]) -> Document:
    """Derived fields of a new term. Without a slug of its own, its name must be new under its parent."""
    parent = record.get("parent") or 0
    key = name_key(record["name"])
    settled: Document = {
        "key": key,
        "parent": parent,
        "ancestors": await ancestors_of(database, kind, parent),
    }
    if not record.get("slug"):
        twin = await database[kind.plural].find_one({"key": key, "parent": parent}, {"_id": 1})
        if twin:
            raise TermExists(term_id=twin["_id"])
        settled["claim"] = f"{parent}:{key}"
    return settled


async def ancestors_of(database: Database, kind: Kind, parent: int, session: Any = None) -> list[int]:
    if not parent:
        return []
    found = await database[kind.plural].find_one({"_id": parent}, {"ancestors": 1}, session=session)
    if found is None:
        raise InvalidFields({"parent": not_found(kind.name)})
    return [*found["ancestors"], parent]


async def check_parent(
    database: Database, kind: Kind, data: Mapping[str, Any], stored: Mapping[str, Any] | None
) -> None:
    """Refuse a parent that does not exist or is a descendant of the category."""
    above = await ancestors_of(database, kind, data.get("parent") or 0)
    if stored and stored["_id"] in above:
        raise InvalidFields({"parent": CIRCLE})


async def move(database: Database, kind: Kind, stored: Document, parent: int, session: Any) -> list[int]:
    """Move all descendants of a category, and return its own new ancestors. There is one lock for the whole
    tree: moves are rare, and two that are valid by themselves can create a cycle together."""
    categories, own = database[kind.plural], stored["_id"]
    await database["counters"].update_one(LOCK, {"$inc": {"n": 1}}, session=session)
    above = await ancestors_of(database, kind, parent, session)
    if own in above:
        raise InvalidFields({"parent": CIRCLE})
    async for below in categories.find({"ancestors": own}, {"ancestors": 1}, session=session):
        kept = below["ancestors"][below["ancestors"].index(own) :]
        change = {"$set": {"ancestors": above + kept}}
        await categories.update_one({"_id": below["_id"]}, change, session=session)
    return above


async def hang(database: Database, kind: Kind, record: Document, session: Any) -> None:
    """Set the ancestors of a new category, and lock the tree until the transaction ends."""
    await database["counters"].update_one(LOCK, {"$inc": {"n": 1}}, session=session)
    record["ancestors"] = await ancestors_of(database, kind, record["parent"], session)


async def insert(client: Client, database: Database, kind: Kind, record: Document) -> None:
    """Insert a new category below another one, which may be moved or deleted at the same time."""

    async def work(session: Any) -> None:
        await hang(database, kind, record, session)
        await database[kind.plural].insert_one(record, session=session)

    await ensure_lock(database)
    async with await client.start_session() as session:
        await session.with_transaction(work)


async def remove(
    client: Client, database: Database, kind: Kind, own: int, versions: frozenset[int] | None
) -> list[int]:
    """Delete a term and move its children to its parent; return the ids of the children."""
    terms = database[kind.plural]
    query = {"_id": own} | ({} if versions is None else {"version": {"$in": list(versions)}})

    async def work(session: Any) -> list[int]:
        await database["counters"].update_one(LOCK, {"$inc": {"n": 1}}, session=session)
        gone = await terms.find_one_and_delete(query, {"parent": 1}, session=session)
        if gone is None:
            left = await terms.find_one({"_id": own}, {"_id": 1}, session=session)
            raise PreconditionFailed if left else NotFound(kind=kind.name)
        parent = gone["parent"]
        children = [row["_id"] async for row in terms.find({"parent": own}, {"_id": 1}, session=session)]
        await terms.update_many(
            {"parent": own}, {"$set": {"parent": parent}, "$inc": {"version": 1}}, session=session
        )
        await terms.update_many({"ancestors": own}, {"$pull": {"ancestors": own}}, session=session)
        return children

    await ensure_lock(database)
    async with await client.start_session() as session:
        found: list[int] = await session.with_transaction(work)
        return found


async def ensure_lock(database: Database) -> None:
    """Create the document that serves as the lock of the tree."""
    # Outside the transaction: an upsert inside one can violate a unique index on old servers.
    await database["counters"].update_one(LOCK, {"$setOnInsert": {"n": 0}}, upsert=True)
