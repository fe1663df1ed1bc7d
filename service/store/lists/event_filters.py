"""Translates the filters of the event list into MongoDB conditions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, time
from typing import Any

from schemas.caller import Caller
from schemas.dates import Moment, parse_moment
from schemas.errors import InvalidFields, Problems, not_found
from schemas.event import EVENT
from schemas.event_representation import LINKED
from schemas.kind import Kind
from schemas.site import Site
from schemas.zones import MIDNIGHT
from service.store.links.resolving import find_term
from service.store.lists.query import ListQuery, ordered
from service.store.lists.visibility import UNLOCKED, visible
from service.store.records.reading import Records

EARTH_KM = 6371.0088
ORDERS = {
    "start_date": "start_utc",
    "end_date": "end_utc",
    "title": "sort",
    "date": "date_utc",
    "modified": "modified_utc",
    "id": "_id",
}
# Parameter -> field, operator for whole days and the time of day to compare with, operator for exact times.
DATES: dict[str, tuple[str, str, time, str]] = {
    "start_date": ("start_utc", "$gte", time(0, 0, 0), "$gte"),
    "end_date": ("end_utc", "$lte", time(23, 59, 59), "$lte"),
    "starts_after": ("start_utc", "$gt", time(23, 59, 59), "$gt"),
    "starts_before": ("start_utc", "$lte", time(23, 59, 59), "$lt"),
    "ends_after": ("end_utc", "$gt", time(23, 59, 59), "$gt"),
    "ends_before": ("end_utc", "$lte", time(23, 59, 59), "$lt"),
}


async def event_list(
    records: Records, kind: Kind, query: Mapping[str, Any], caller: Caller, problems: Problems
) -> ListQuery:
    conditions: list[dict[str, Any]] = [{"hide_from_listings": False}]
    with problems.gather():
        conditions.append(visible(caller, query.get("status")))
    if query.get("include"):
        conditions.append({"_id": {"$in": query["include"]}})
    else:
        conditions += date_conditions(query, records.site, problems)
    conditions += [{name: query[name]} for name in ("featured", "ticketed") if query.get(name) is not None]
    conditions += await _links(records, query, caller, problems)
    with problems.gather():
        conditions += await _parent(records, query)
    problems.refuse()
    conditions += _places(query, caller, records.site)
    if query.get("search"):
        conditions += [UNLOCKED, *await records.vocabulary.condition(query["search"])]
    return ListQuery(conditions, ordered(ORDERS[query.get("orderby") or "start_date"], query.get("order")))


def date_conditions(query: Mapping[str, Any], site: Site, problems: Problems) -> list[dict[str, Any]]:
    """Bounds on start and end. Without a `starts_*` or `ends_*` filter the list covers the next two years."""
    sent = {name: query[name] for name in DATES if query.get(name) is not None}
    if not sent.keys() - {"start_date", "end_date"}:
        now = site.now()
        sent.setdefault("start_date", Moment(instant=now))
        sent.setdefault("end_date", parse_moment("now +2 years", now, site.zone))
    conditions = []
    for name, moment in sent.items():
        field, by_day, edge, by_instant = DATES[name]
        strict = bool(query.get("strict_dates"))
        try:
            bound = moment.utc(site.zone) if strict else _edge_of_day(moment, edge, site)
        except ValueError as error:
            problems[name] = error.args[0]
            continue
        operator = by_instant if strict else by_day
        conditions.append({field: {operator: bound}})
        # No event ends before it starts, so bound the other field, too: it narrows the index scan.
        if field == "end_utc" and operator.startswith("$l"):
            conditions.append({"start_utc": {"$lte": bound}})
        if field == "start_utc" and operator.startswith("$g"):
            conditions.append({"end_utc": {"$gte": bound}})
    return conditions


def _edge_of_day(moment: Moment, edge: time, site: Site) -> datetime:
    # If clocks are set back at midnight, the last hour of the day occurs twice: the day ends with the second.
    shown = site.zone.edge_of_day(moment.day(site.zone), edge)
    return site.zone.to_utc(shown, is_last=edge != MIDNIGHT)


def seen_copy(caller: Caller) -> dict[str, Any]:
    """Condition under which the caller may see an embedded venue or organizer."""
    if caller.sees_all:
        return {"status": {"$ne": "trash"}}
    if caller.own is not None:
        return {"$or": [{"status": "publish"}, {"author": caller.own, "status": {"$ne": "trash"}}]}
    return {"status": "publish"}


def unlocked(caller: Caller) -> list[dict[str, Any]]:
    """Conditions under which the caller may see an event's links: filters must not reveal hidden fields."""
    return [] if caller.bypasses_passwords else [UNLOCKED]


async def _links(
    records: Records, query: Mapping[str, Any], caller: Caller, problems: Problems
) -> list[dict[str, Any]]:
    conditions: list[dict[str, Any]] = unlocked(caller) if any(query.get(field) for field in LINKED) else []
    for field, kind in LINKED.items():
        if wanted := query.get(field):
            find = _posts if kind.is_post else _terms
            with problems.gather():
                conditions.append({f"{field}._id": {"$in": await find(records, kind, field, wanted, caller)}})
    return conditions


async def _posts(records: Records, kind: Kind, name: str, wanted: list[int], caller: Caller) -> list[int]:
    """Ids of those venues or organizers that the caller may see; others match no event. Checked on the
    records instead of their embedded copies, so that events can be counted from an index alone."""
    rows = await require(records, kind, name, wanted)
    return [row["_id"] for row in rows if row["status"] != "trash" and caller.sees(row)]


async def require(records: Records, kind: Kind, name: str, ids: list[int]) -> list[dict[str, Any]]:
    """Raise InvalidFields unless every id exists; return status and author of each record."""
    shown = {"status": 1, "author": 1}
    rows = await records.database[kind.plural].find({"_id": {"$in": ids}}, shown).to_list(None)
    if unknown := sorted(set(ids) - {row["_id"] for row in rows}):
        raise InvalidFields({name: not_found(kind.name, unknown[0])})
    return rows


async def _terms(records: Records, kind: Kind, name: str, wanted: list[str], caller: Caller) -> list[int]:
    """Ids of the terms given by id, slug or name, and of all their descendants."""
    ids = []
    terms = records.database[kind.plural]
    for text in wanted:
        if not (term := await find_term(records.database, kind, text)):
            raise InvalidFields({name: not_found(kind.name, text)})
        ids.append(term["_id"])
    below = await terms.find({"ancestors": {"$in": ids}}, {"_id": 1}).to_list(None)
    return [*ids, *(row["_id"] for row in below)]


async def _parent(records: Records, query: Mapping[str, Any]) -> list[dict[str, Any]]:
    if not (parent := query.get("post_parent")):
        return []
    await require(records, EVENT, "post_parent", [parent])
    return [{"post_parent": parent}]


def _places(query: Mapping[str, Any], caller: Caller, site: Site) -> list[dict[str, Any]]:
    conditions: list[dict[str, Any]] = []
    located = [{"venue": {"$elemMatch": {"geo_lat": {"$gte": -90}} | seen_copy(caller)}}, *unlocked(caller)]
    if query.get("geoloc") is not None:
        conditions += located if query["geoloc"] else [{"$nor": [{"$and": located}]}]
    if query.get("geoloc_lat") is not None:
        radius = query.get("geoloc_radius")
        angle = (site.radius_km if radius is None else radius) / EARTH_KM
        within = {"$geoWithin": {"$centerSphere": [[query["geoloc_lng"], query["geoloc_lat"]], angle]}}
        copy = {"point": within} | seen_copy(caller)
        conditions += [{"venue.point": within}, {"venue": {"$elemMatch": copy}}, *unlocked(caller)]
    return conditions
