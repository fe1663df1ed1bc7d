"""Translates the filters of lists other than that of events into MongoDB conditions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from schemas import CATEGORY
from schemas.caller import Caller, visible
from schemas.errors import Problems
from schemas.kind import Kind
from schemas.kinds.event_representation import LINK_FIELD
from service.store.lists.query import UNLOCKED, Condition, ListQuery, changed_after, ordered
from service.store.lists.resolver import FilterResolver

POST_ORDERS = {"date": "date_utc", "modified": "modified_utc", "title": "sort", "id": "_id"}
TERM_ORDERS = {"name": "sort", "id": "_id", "count": "events.publish", "include": "_id"}


async def post_list(
    resolver: FilterResolver, kind: Kind, params: Mapping[str, Any], caller: Caller, problems: Problems
) -> ListQuery:
    conditions: list[Condition] = []
    with problems.gather():
        conditions.append(visible(caller, params.get("status")))
    conditions += changed_after(params, resolver.site)
    if params.get("event") is not None:
        with problems.gather():
            ids = await resolver.linked_ids(kind, "event", params["event"], caller)
            conditions.append({"_id": {"$in": ids}})
    problems.refuse()
    if params.get("has_events") is not None:
        used = await _used(resolver, kind, caller, datetime.min)
        conditions.append(used if params["has_events"] else {"$nor": [used]})
    if params.get("only_with_upcoming"):
        conditions.append(await _used(resolver, kind, caller, resolver.site.now()))
    if params.get("search"):
        conditions += await resolver.vocabulary.condition(params["search"])
    field = POST_ORDERS[params.get("orderby") or "date"]
    direction = params.get("order") or ("asc" if field in ("_id", "sort") else "desc")
    # Public and own records together are nearly all records: scan them in order of date.
    hint = "any_by_date" if caller.own is not None and field == "date_utc" and len(conditions) == 1 else None
    return ListQuery(kind.plural, conditions, ordered(field, direction), hint=hint)


async def _used(resolver: FilterResolver, kind: Kind, caller: Caller, since: datetime) -> Condition:
    """Condition for records with events that the caller may see and that end at or after a time. Records
    without any have no latest end."""
    await resolver.log.catch_up_counters()
    late = {"$gte": since}
    if caller.sees_all:
        used: Condition = {"events.live_end": late}
        if not caller.bypasses_passwords and (secret := await _secret(resolver, kind, {"end_utc": late})):
            used |= {"_id": {"$nin": secret}}
        return used
    public = {"events.publish_end": late}
    if caller.own is None:
        return public
    own = {"author": caller.own, "status": {"$nin": ["publish", "trash"]}, "end_utc": late, **UNLOCKED}
    ids = await resolver.database["events"].distinct(f"{LINK_FIELD[kind.name]}._id", own)
    return {"$or": [public, {"_id": {"$in": ids}}]}


async def _secret(resolver: FilterResolver, kind: Kind, when: Condition) -> list[int]:
    """Ids of records that only protected events link to: counters include them, but the links are secret."""
    field = f"{LINK_FIELD[kind.name]}._id"
    live = {"status": {"$ne": "trash"}} | when
    ids = await resolver.database["events"].distinct(field, {"locked": True} | live)
    if not ids:
        return []
    known = [{"$match": live | UNLOCKED}, {"$limit": 1}, {"$project": {"_id": 1}}]
    joined = {"from": "events", "localField": "_id", "foreignField": field, "pipeline": known, "as": "known"}
    found: list[Condition] = [{"$match": {"_id": {"$in": ids}}}, {"$lookup": joined}]
    rows = resolver.database[kind.plural].aggregate(
        [*found, {"$match": {"known": []}}, {"$project": {"_id": 1}}]
    )
    return [row["_id"] for row in await rows.to_list(None)]


async def term_list(
    resolver: FilterResolver, kind: Kind, params: Mapping[str, Any], caller: Caller, problems: Problems
) -> ListQuery:
    await resolver.log.catch_up_counters()  # terms are shown with the number of their events
    conditions = changed_after(params, resolver.site)
    for name, operator in (("include", "$in"), ("exclude", "$nin")):
        if params.get(name):
            with problems.gather():
                await resolver.require(kind, name, params[name])
            conditions.append({"_id": {operator: params[name]}})
    with problems.gather():
        conditions += await _of_event(resolver, kind, params, caller)
    if params.get("slug"):
        conditions.append({"slug": params["slug"]})
    if (parent := params.get("parent")) is not None:
        if parent:
            with problems.gather():
                await resolver.require(kind, "parent", [parent])
        conditions.append({"parent": parent})
    problems.refuse()
    if params.get("search"):
        conditions += await resolver.vocabulary.condition(params["search"])
    name = params.get("orderby") or "name"
    return ListQuery(kind.plural, conditions, ordered(TERM_ORDERS.get(name, name), params.get("order")))


async def _of_event(
    resolver: FilterResolver, kind: Kind, params: Mapping[str, Any], caller: Caller
) -> list[Condition]:
    """Conditions for the terms of one event; otherwise, with `hide_empty`, for terms with public events and
    categories above such."""
    for name in ("event", "post"):
        if params.get(name) is not None:
            return [{"_id": {"$in": await resolver.linked_ids(kind, name, params[name], caller)}}]
    if not params.get("hide_empty"):
        return []
    used = {"events.publish": {"$gt": 0}}
    if kind is not CATEGORY:
        return [used]
    above = await resolver.database[kind.plural].distinct("ancestors", used)
    return [{"$or": [used, {"_id": {"$in": above}}]}]
