"""Translates the filters of the lists of venues, organizers and other posts into MongoDB conditions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.caller import Caller
from schemas.errors import InvalidFields, Problems, not_found
from schemas.kind import Kind
from service.store.links.fanout import FIELD
from service.store.lists.query import ListQuery, ordered
from service.store.lists.visibility import UNLOCKED, visible
from service.store.records.reading import Records


async def post_list(
    records: Records, kind: Kind, query: Mapping[str, Any], caller: Caller, problems: Problems
) -> ListQuery:
    conditions: list[dict[str, Any]] = []
    with problems.gather():
        conditions.append(visible(caller, query.get("status")))
    if query.get("event") is not None:
        with problems.gather():
            ids = await linked_ids(records, kind, "event", query["event"], caller)
            conditions.append({"_id": {"$in": ids}})
    problems.refuse()
    if query.get("has_events") is not None:
        used = await _used(records, kind, caller, {"$gt": 0}, "")
        conditions.append(used if query["has_events"] else {"$nor": [used]})
    if query.get("only_with_upcoming"):
        conditions.append(await _used(records, kind, caller, {"$gte": records.site.now()}, "_end"))
    if query.get("search"):
        conditions += await records.vocabulary.condition(query["search"])
    orders = {"date": "date_utc", "modified": "modified_utc", "title": "sort", "id": "_id"}
    field = orders[query.get("orderby") or "date"]
    direction = query.get("order") or ("asc" if field in ("_id", "sort") else "desc")
    # Public and own records together are nearly all records: scan them in order of date.
    hint = "any_by_date" if caller.own is not None and field == "date_utc" and len(conditions) == 1 else None
    return ListQuery(conditions, ordered(field, direction), hint)


async def linked_ids(records: Records, kind: Kind, name: str, event: int, caller: Caller) -> list[int]:
    """Ids that an event links to, none if it is protected; InvalidFields if the caller may not see it."""
    found = await records.database["events"].find_one(
        {"$and": [{"_id": event}, visible(caller)]}, {FIELD[kind.name]: 1, "password": 1}
    )
    if found is None:
        raise InvalidFields({name: not_found("event")})
    locked = found.get("password") and not caller.bypasses_passwords
    return [] if locked else [copy["_id"] for copy in found.get(FIELD[kind.name], ())]


async def _used(records: Records, kind: Kind, caller: Caller, bound: Any, end: str) -> dict[str, Any]:
    """Condition on the count (or with `end` the latest end) of linked events that the caller may see."""
    if caller.sees_all:
        used = {f"events.live{end}": bound}
        if not caller.bypasses_passwords and (
            secret := await _secret(records, kind, {"end_utc": bound} if end else {})
        ):
            used |= {"_id": {"$nin": secret}}
        return used
    public = {f"events.publish{end}": bound}
    if caller.own is None:
        return public
    own = {"author": caller.own, "status": {"$nin": ["publish", "trash"]}, **UNLOCKED}
    query = own | ({"end_utc": bound} if end else {})
    ids = await records.database["events"].distinct(f"{FIELD[kind.name]}._id", query)
    return {"$or": [public, {"_id": {"$in": ids}}]}


async def _secret(records: Records, kind: Kind, when: dict[str, Any]) -> list[int]:
    """Ids of records that only protected events link to: counters include them, but the links are secret."""
    field = f"{FIELD[kind.name]}._id"
    live = {"status": {"$ne": "trash"}} | when
    ids = await records.database["events"].distinct(field, {"locked": True} | live)
    if not ids:
        return []
    known = [{"$match": live | UNLOCKED}, {"$limit": 1}, {"$project": {"_id": 1}}]
    joined = {"from": "events", "localField": "_id", "foreignField": field, "pipeline": known, "as": "known"}
    found: list[dict[str, Any]] = [{"$match": {"_id": {"$in": ids}}}, {"$lookup": joined}]
    rows = records.database[kind.plural].aggregate(
        [*found, {"$match": {"known": []}}, {"$project": {"_id": 1}}]
    )
    return [row["_id"] for row in await rows.to_list(None)]
