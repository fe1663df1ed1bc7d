"""Checks what there is once: the number of the stored form, the identity, and the counters of ids."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID, uuid4

from schemas import KINDS
from schemas.kind import Document
from service.doctor.findings import DatabaseCheck, Finding
from service.doctor.scope import Scope
from service.doctor.values import CLOCK_ERROR, is_number, is_time
from service.migrations import FORM
from service.migrations.id_counters import SPACES, WORD, highest_id, raise_id_counter
from service.mongo.instance import INSTANCE
from service.store.links.category_tree import LOCK


async def _set(scope: Scope, name: str, query: Document, values: Document) -> None:
    await scope.database[name].update_one(query, {"$set": values}, upsert=True)


async def find_form(scope: Scope) -> list[Finding]:
    """That the database has this form, and not an older one, was found out before."""
    found = await scope.collection("meta").find_one({"_id": "form"})
    number = (found or {}).get("number")
    if number == FORM and is_number(number):
        return []
    problem = f"the number of its stored form is {number!r:.40}, not {FORM}"
    return [
        Finding(
            "database",
            problem,
            "form",
            repair=partial(_set, scope, "meta", {"_id": "form"}, {"number": FORM}),
        )
    ]


async def find_instance(scope: Scope) -> list[Finding]:
    found = await scope.collection("meta").find_one(INSTANCE) or {}
    wrong = [
        name
        for name in ("uuid", "origin")
        if (name in found or name == "uuid") and not is_uuid(found.get(name))
    ]
    if not wrong:
        return []
    problem = (
        f"its identity is missing or not valid ({', '.join(wrong)}); calendar programs will see a new one"
    )
    repair = partial(_set, scope, "meta", INSTANCE, {name: str(uuid4()) for name in wrong})
    return [Finding("database", problem, "instance", repair=repair)]


async def find_leases(scope: Scope) -> list[Finding]:
    """A lease lasts for seconds, and is renewed. While one is held, services that need it do not start. One
    whose end is not a time is held for ever."""
    late = scope.site.now() + CLOCK_ERROR
    is_wrong = {"$or": [{"until": {"$gt": late}}, {"until": {"$exists": True, "$not": {"$type": "date"}}}]}
    return [
        Finding(
            f"lease {row['_id']!r:.60}",
            f"it is held until {row['until']} UTC" if is_time(row["until"]) else "its end is not a time",
            repair=partial(scope.database["meta"].delete_one, {"_id": row["_id"], "until": row["until"]}),
        )
        async for row in scope.collection("meta").find(is_wrong)
    ]


def is_uuid(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(UUID(value))
    except ValueError:
        return False


async def find_ids(scope: Scope) -> list[Finding]:
    """Records with ids that no request can name; the other checks leave them out."""
    not_valid = {"$or": [{"_id": {"$not": {"$type": ["int", "long"]}}}, {"_id": {"$lt": 1}}]}
    advice = "create it again with the editor or the API, and remove it from the database"
    return [
        Finding(f"{kind.name} {row['_id']!r:.60}", "its ID is not a positive whole number", advice=advice)
        for kind in KINDS
        async for row in scope.collection(kind.plural).find(not_valid, {"_id": 1})
    ]


async def find_counters(scope: Scope) -> list[Finding]:
    """Ids up to the counter are never given again."""
    stored = {row["_id"]: row.get("n") async for row in scope.collection("counters").find()}
    found = []
    for space in (*SPACES, WORD):
        number, highest = stored.get(space, 0), await highest_id(scope.database, space)
        if not is_number(number) or number < highest:
            problem = f"the last ID is {number!r:.40}, but {highest} is used"
            found.append(Finding(f"counter {space}", problem, repair=partial(_raise, scope, space)))
    if LOCK["_id"] in stored and not is_number(stored[LOCK["_id"]]):
        repair = partial(_set, scope, "counters", LOCK, {"n": 0})
        found.append(Finding("counter category-tree", "it is not a number", repair=repair))
    return found


async def _raise(scope: Scope, space: str) -> None:
    fraction = {"_id": space, "n": {"$type": ["double", "decimal"]}}
    whole = {"$convert": {"input": "$n", "to": "long", "onError": 0}}
    await scope.database["counters"].update_one(fraction, [{"$set": {"n": whole}}])
    # A value of another type compares as higher than any number.
    not_numbers = {"_id": space, "n": {"$not": {"$type": "number"}}}
    await scope.database["counters"].delete_one(not_numbers)
    await raise_id_counter(scope.database, space)


FORM_NUMBER = DatabaseCheck(
    "stored form", "the number of the stored form is missing or wrong: set", find_form
)
LEASES = DatabaseCheck("leases", "a lease does not expire, or its end is not a time: removed", find_leases)
IDENTITY = DatabaseCheck(
    "identity", "the identity of the database is missing or not valid: a new one is made", find_instance
)
IDS = DatabaseCheck("IDs", "the ID of a record is not a positive whole number: only reported", find_ids)
ID_COUNTERS = DatabaseCheck(
    "ID counters", "the last ID is lower than one that is used: raised", find_counters
)
