"""Where the value of a damaged field can still be found: in copies of the record, and in its other fields."""

from __future__ import annotations

from typing import Any

from schemas import EVENT
from schemas.kind import Document, Kind
from schemas.kinds.event_representation import LINK_FIELD
from service.doctor.scope import Scope
from service.migrations.recount import Counted, snapshot_time, usage_counters

UNSEEN = 1000
"""By how much a version is raised if the last one is not known: no cache may have the new one."""


async def copied(scope: Scope, kind: Kind, record: Document, name: str) -> Any:
    """The value of a field in a copy of the record; None if there is no copy."""
    if not (field := LINK_FIELD.get(kind.name)):
        return None
    query = {field: {"$elemMatch": {"_id": record["_id"]}}}
    event = await scope.collection(EVENT.plural).find_one(query, {f"{field}.$": 1})
    return event[field][0].get(name) if event else None


def last_fact(record: Document, name: str) -> Any:
    """The value that the last change of a record has told other processes; None if it is not known."""
    last = record.get("last_change")
    if not isinstance(last, dict) or not isinstance(last.get("was"), dict):
        return None
    return (last["was"] | (last.get("now") or {})).get(name)


async def copied_version(scope: Scope, kind: Kind, record: Document) -> int:
    """The version that copies of the record have; without copies, one that was not used before."""
    version, stored = await copied(scope, kind, record, "version"), record.get("version")
    if version is None and isinstance(stored, float) and stored.is_integer():
        return int(stored)
    last = record.get("last_change")
    told = last.get("version") if isinstance(last, dict) else None
    known = [one for one in (version, told, stored, 1) if isinstance(one, int)]
    return version if version == max(known) else max(known) + UNSEEN


async def original_name(scope: Scope, kind: Kind, record: Document) -> str:
    """The name in a copy of the record, or the first line of its search text, without its capital letters."""
    if isinstance(name := await copied(scope, kind, record, kind.name_field), str):
        return name
    text = record.get("text")
    value = record.get(kind.name_field)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return (text.partition("\n")[0] if isinstance(text, str) else "") or f"{kind.name} {record['_id']}"


async def counted(scope: Scope, kind: Kind, record: Document) -> Document:
    """The usage counters of a record, counted now."""
    at = await snapshot_time(scope.database)
    id, field = record["_id"], LINK_FIELD[kind.name]
    own = {"$gte": id, "$lte": id}
    return (await usage_counters(Counted(scope.database, at), field, own, [id]))[id]
