"""Checks values that only one record of a kind may have, as after the loss of a unique index."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

from schemas import KINDS
from schemas.kind import Document, Kind
from service.doctor.evidence import copied
from service.doctor.findings import REMOVED, DatabaseCheck, Finding
from service.doctor.mending import mend
from service.doctor.scope import Scope
from service.doctor.values import is_slug


class Unique(NamedTuple):
    """A field with unique values, how a record gets another one, and whether a record's value is its own."""

    field: str
    type: str
    replace: Callable[[Scope, Kind, Document], Awaitable[Any]]
    is_own: Callable[[Scope, Kind, Document], Awaitable[bool]]


async def free_slug(scope: Scope, kind: Kind, record: Document) -> str:
    known = await copied(scope, kind, record, "slug")
    # Without the record's id, so that its own slug counts as taken.
    return (await scope.slugs.reserve_unique(kind.plural, [known if is_slug(known) else record["slug"]]))[0]


async def is_copied_slug(scope: Scope, kind: Kind, record: Document) -> bool:
    return bool(await copied(scope, kind, record, "slug") == record["slug"])


async def is_own_claim(scope: Scope, kind: Kind, record: Document) -> bool:
    return str(record["claim"]).endswith(f":{record.get('key')}")


async def always(scope: Scope, kind: Kind, record: Document) -> bool:
    return True


async def right_claim(scope: Scope, kind: Kind, record: Document) -> Any:
    """The claim that fits the record, unless another one has it."""
    claim = f"{record.get('parent')}:{record.get('key')}"
    return REMOVED if await scope.collection(kind.plural).find_one({"claim": claim}) else claim


async def none(scope: Scope, kind: Kind, record: Document) -> Any:
    return REMOVED


UNIQUE = (
    Unique("slug", "string", free_slug, is_copied_slug),
    Unique("import_key", "binData", none, always),
    Unique("claim", "string", right_claim, is_own_claim),
)


async def find(scope: Scope) -> list[Finding]:
    return [finding for kind in KINDS for unique in UNIQUE for finding in await _find(scope, kind, unique)]


async def _find(scope: Scope, kind: Kind, unique: Unique) -> list[Finding]:
    """The oldest record keeps the value, of those that it seems to belong to."""
    name = unique.field
    groups = scope.collection(kind.plural).aggregate(
        [
            {"$match": {name: {"$type": unique.type}}},
            {"$project": {name: 1}},
            {"$sort": {name: 1}},
            {"$group": {"_id": f"${name}", "ids": {"$push": "$_id"}, "times": {"$sum": 1}}},
            {"$match": {"times": {"$gt": 1}}},
        ],
        allowDiskUse=True,
    )
    found = []
    async for group in groups:
        first, *others = await _ordered(scope, kind, unique, group["ids"])
        for id in others:
            problem = f"{name} {group['_id']!r:.80} is also that of {kind.name} {first}"
            repair = partial(_replace, scope, kind, unique, id)
            found.append(Finding(f"{kind.name} {id}", problem, name, id, repair=repair))
    return found


async def _ordered(scope: Scope, kind: Kind, unique: Unique, ids: list[Any]) -> list[Any]:
    rows = await scope.collection(kind.plural).find({"_id": {"$in": ids}}).sort("_id", 1).to_list(None)
    owners = [row["_id"] for row in rows if await unique.is_own(scope, kind, row)]
    return [*owners, *(row["_id"] for row in rows if row["_id"] not in owners)]


async def _replace(scope: Scope, kind: Kind, unique: Unique, id: int) -> None:
    if record := await scope.collection(kind.plural).find_one({"_id": id}):
        await mend(scope, kind, record, {unique.field: await unique.replace(scope, kind, record)})


UNIQUE_VALUES = DatabaseCheck(
    "unique values",
    "two records have the same slug, import key or claim on a name: one keeps it (the older, unless there is "
    "evidence that it belongs to the other); the other gets a new value or none",
    find,
)
