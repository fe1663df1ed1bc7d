"""Translates the filters of the category and tag lists into MongoDB conditions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas import CATEGORY
from schemas.caller import Caller
from schemas.errors import Problems
from schemas.kind import Kind
from service.store.lists.event_filters import require
from service.store.lists.post_filters import linked_ids
from service.store.lists.query import ListQuery, ordered
from service.store.records.reading import Records

ORDERS = {"name": "sort", "id": "_id", "count": "events.publish", "include": "_id"}


async def term_list(
    records: Records, kind: Kind, query: Mapping[str, Any], caller: Caller, problems: Problems
) -> ListQuery:
    conditions: list[dict[str, Any]] = []
    for name, operator in (("include", "$in"), ("exclude", "$nin")):
        if query.get(name):
            with problems.gather():
                await require(records, kind, name, query[name])
            conditions.append({"_id": {operator: query[name]}})
    with problems.gather():
        conditions += await _of_event(records, kind, query, caller)
    if query.get("slug"):
        conditions.append({"slug": query["slug"]})
    if (parent := query.get("parent")) is not None:
        if parent:
            with problems.gather():
                await require(records, kind, "parent", [parent])
        conditions.append({"parent": parent})
    problems.refuse()
    if query.get("search"):
        conditions += await records.vocabulary.condition(query["search"])
    field = ORDERS.get(query.get("orderby") or "name", query.get("orderby") or "name")
    return ListQuery(conditions, ordered(field, query.get("order")))


async def _of_event(
    records: Records, kind: Kind, query: Mapping[str, Any], caller: Caller
) -> list[dict[str, Any]]:
    """Conditions for the terms of one event, which are never empty for its reader, or for non-empty terms."""
    for name in ("event", "post"):
        if query.get(name) is not None:
            return [{"_id": {"$in": await linked_ids(records, kind, name, query[name], caller)}}]
    if not query.get("hide_empty"):
        return []
    used = {"events.publish": {"$gt": 0}}
    if kind is not CATEGORY:
        return [used]
    above = await records.database[kind.plural].distinct("ancestors", used)
    return [{"$or": [used, {"_id": {"$in": above}}]}]
