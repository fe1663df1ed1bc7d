"""Repairs fields of a record, unless it has changed since it was read."""

from __future__ import annotations

from typing import Any

from schemas.kind import Document, Kind
from service.doctor.findings import REMOVED
from service.doctor.scope import Scope
from service.mongo.client import Session, in_transaction

HIDDEN = {
    *("tok", "text", "sort", "key", "claim", "parent", "ancestors", "point", "locked", "trashed_from"),
    *("events", "import_key", "import_hash", "last_change", "version", "modified_utc"),
}
"""Fields that no representation shows: if only these change, the record keeps its version."""


async def mend(scope: Scope, kind: Kind, record: Document, fields: Document) -> None:
    """Set fields of a record. As with every update, its version is incremented if its representation changes,
    so that running services see it, and copies of it are updated."""
    values = {name: value for name, value in fields.items() if value is not REMOVED}
    if kind.search_fields and values.keys() & {*kind.search_fields}:
        values |= await scope.vocabulary().searchable(kind, record | values)
    change: Document = {"$set": values}
    if removed := dict.fromkeys(fields.keys() - values.keys(), ""):
        change["$unset"] = removed
    if not fields.keys() <= HIDDEN:
        values.setdefault("modified_utc", scope.site.now())
        values["has_own_time"] = False  # the version before may be of the same second
        if "version" not in values:
            change["$inc"] = {"version": 1}
    query = {name: as_read(record, name) for name in ("_id", "version", *fields)}

    async def write(session: Session) -> list[Document]:
        changes = {name: one for name, one in change.items() if one}
        await scope.database[kind.plural].update_one(query, changes, session=session)
        return await scope.fanout.enqueue_if_embedded(kind, record["_id"], values, session)

    for job in await in_transaction(scope.database, write):
        await scope.fanout.run(job)


def as_read(record: Document, name: str) -> Any:
    """The condition that a field is still as it was read."""
    return {"$eq": record[name]} if name in record else {"$exists": False}
