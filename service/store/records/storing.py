"""Stores new records: each by itself, or together with the linked records that they create."""

from __future__ import annotations

from collections.abc import Sequence

from pymongo.errors import DuplicateKeyError

from schemas.errors import InvalidFields
from schemas.kind import Document, Kind
from service.store.links.category_tree import CategoryTree
from service.store.links.resolving import Linked
from service.store.mongo.client import Database, Session
from service.store.mongo.inserts import UNSTORABLE, insert_each
from service.store.records.drafting import Drafter

CONFLICTS = (DuplicateKeyError, InvalidFields)
"""Another writer was first: it took the slug or the name, or deleted the parent."""
Errors = dict[int, Exception]
"""Errors by the ids of the records that were not stored."""


async def store_each(
    database: Database, tree: CategoryTree, kind: Kind, records: Sequence[Document]
) -> Errors:
    """Store records, each by itself; categories below others together, or none of them."""
    failed: Errors = {}
    if below := [record for record in records if record.get("parent")]:
        try:
            await tree.insert(kind, below)
        except CONFLICTS as error:
            failed |= {record["_id"]: error for record in below}
    others = [record for record in records if not record.get("parent")]
    return failed | await insert_each(database[kind.plural], others)


async def store_together(
    database: Database, drafter: Drafter, kind: Kind, records: Sequence[Document], new: Linked
) -> Errors:
    """Store events and the records that they create in one transaction: all or none."""

    async def insert(session: Session) -> None:
        await drafter.insert_linked(new, session)
        await insert_each(database[kind.plural], records, session)

    try:
        async with await database.client.start_session() as session:
            await session.with_transaction(insert)
    except UNSTORABLE as error:
        return {record["_id"]: error for record in records}
    return {}
