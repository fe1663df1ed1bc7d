"""Translates the filters of the event list into MongoDB conditions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, time
from functools import lru_cache
from typing import Any

from schemas.caller import Caller, cancelled, visible
from schemas.errors import Problems
from schemas.kind import Kind
from schemas.kinds.event_representation import LINKED
from schemas.kinds.venue import VENUE
from schemas.site import Site
from schemas.values.dates import Moment, parse_moment
from schemas.values.zones import Zone
from service.store.lists.query import UNLOCKED, Condition, ListQuery, changed_after, ordered
from service.store.lists.resolver import Circle, FilterResolver

ORDERS = {
    "start_date": "start_utc",
    "end_date": "end_utc",
    "title": "sort",
    "date": "date_utc",
    "modified": "modified_utc",
    "id": "_id",
}
RESOLVED = {**LINKED, "geoloc_lat": VENUE}
"""Filters for which records of another kind are found first."""
DATES: dict[str, tuple[str, str, time, str]] = {
    "start_date": ("start_utc", "$gte", time(0, 0, 0), "$gte"),
    "end_date": ("end_utc", "$lte", time(23, 59, 59), "$lte"),
    "starts_after": ("start_utc", "$gt", time(23, 59, 59), "$gt"),
    "starts_before": ("start_utc", "$lte", time(23, 59, 59), "$lt"),
    "ends_after": ("end_utc", "$gt", time(23, 59, 59), "$gt"),
    "ends_before": ("end_utc", "$lte", time(23, 59, 59), "$lt"),
}
"""Parameter -> field, operator and time of day for whole days, operator for exact times."""


async def event_list(
    resolver: FilterResolver, kind: Kind, params: Mapping[str, Any], caller: Caller, problems: Problems
) -> ListQuery:
    conditions = listed(params, caller)
    dates: list[Condition] | None = None
    with problems.gather():
        since, statuses = params.get("cancelled_since"), params.get("status")
        conditions.append(cancelled(caller, since, statuses) if since else visible(caller, statuses))
    if params.get("include"):
        conditions.append({"_id": {"$in": params["include"]}})
    else:
        dates = date_conditions(params, resolver.site)
    conditions += changed_after(params, resolver.site)
    conditions += [{name: params[name]} for name in ("featured", "ticketed") if params.get(name) is not None]
    conditions += await _links(resolver, params, caller, problems)
    if parent := params.get("post_parent"):
        with problems.gather():
            await resolver.require(kind, "post_parent", [parent])
        conditions.append({"post_parent": parent})
    problems.refuse()
    conditions += await _places(resolver, params, caller)
    if params.get("search"):
        conditions += [UNLOCKED, *await resolver.vocabulary.condition(params["search"])]
    sort = ordered(ORDERS[params.get("orderby") or "start_date"], params.get("order"))
    resolved = tuple(kind.plural for name, kind in RESOLVED.items() if params.get(name) is not None)
    return ListQuery(kind.plural, conditions, sort, dates, resolved)


def listed(params: Mapping[str, Any], caller: Caller) -> list[Condition]:
    """Conditions under which an event is in a list. The editor shows hidden events as well, to their authors
    and to those who see everything."""
    if not params.get("with_hidden"):
        return [{"hide_from_listings": False}]
    return [] if caller.sees_all else [{"$or": [{"hide_from_listings": False}, {"author": caller.own}]}]


def date_conditions(params: Mapping[str, Any], site: Site) -> list[Condition]:
    """Bounds on start and end. Without a `starts_*` or `ends_*` filter the list covers the next two years,
    unless events of any date are wanted."""
    sent = {name: params[name] for name in DATES if params.get(name) is not None}
    if not params.get("any_date") and not sent.keys() - {"start_date", "end_date"}:
        now, end = _default_window(site.now(), site.zone)
        sent.setdefault("start_date", now)
        sent.setdefault("end_date", end)
    is_strict, conditions = bool(params.get("strict_dates")), []
    for name, moment in sent.items():
        field, by_day, edge, by_instant = DATES[name]
        operator = by_instant if is_strict else by_day
        bound = moment.bound(site.zone, None if is_strict else edge)
        conditions.append({field: {operator: bound}})
        # No event ends before it starts, so bound the other field, too: it narrows the index scan.
        if field == "end_utc" and operator.startswith("$l"):
            conditions.append({"start_utc": {operator: bound}})
        if field == "start_utc" and operator.startswith("$g"):
            conditions.append({"end_utc": {operator: bound}})
    return conditions


@lru_cache(1)
def _default_window(now: datetime, zone: Zone) -> tuple[Moment, Moment]:
    return Moment(instant=now), parse_moment("now +2 years", now, zone)


def unlocked(caller: Caller) -> list[Condition]:
    """Conditions under which the caller may see an event's links: filters must not reveal hidden fields."""
    return [] if caller.bypasses_passwords else [UNLOCKED]


async def _links(
    resolver: FilterResolver, params: Mapping[str, Any], caller: Caller, problems: Problems
) -> list[Condition]:
    conditions: list[Condition] = unlocked(caller) if any(params.get(field) for field in LINKED) else []
    for field, kind in LINKED.items():
        if wanted := params.get(field):
            with problems.gather():
                if kind.is_post:
                    ids = await resolver.visible_ids(kind, field, wanted, caller)
                else:
                    ids = await resolver.term_ids(kind, field, wanted)
                conditions.append({f"{field}._id": {"$in": ids}})
    return conditions


async def _places(resolver: FilterResolver, params: Mapping[str, Any], caller: Caller) -> list[Condition]:
    conditions: list[Condition] = []
    located = [{"venue": {"$elemMatch": {"geo_lat": {"$gte": -90}} | visible(caller)}}, *unlocked(caller)]
    if params.get("geoloc") is not None:
        conditions += located if params["geoloc"] else [{"$nor": [{"$and": located}]}]
    if params.get("geoloc_lat") is not None:
        radius = params.get("geoloc_radius")
        radius_km = resolver.site.radius_km if radius is None else radius
        circle = Circle(params["geoloc_lat"], params["geoloc_lng"], radius_km, caller)
        ids = await resolver.venues_near(circle)
        conditions += [{"venue._id": {"$in": ids}}, *unlocked(caller)]
    return conditions
