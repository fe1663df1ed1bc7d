"""Checks the times of events: local times, the time zone and UTC must agree."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, time, timedelta
from typing import Any

from schemas.kind import Document, Kind
from schemas.kinds.event import EVENT
from schemas.values.zones import Zone, parse_zone
from service.doctor.evidence import last_fact
from service.doctor.findings import Finding, RecordCheck
from service.doctor.scope import Scope

EDGES = {"start": time(0, 0, 0), "end": time(23, 59, 59)}
"""When an all-day event begins and ends."""
ADVICE = "send a new start_date, end_date and timezone with the editor or the API"


async def find(scope: Scope, kind: Kind, records: Sequence[Document]) -> list[Finding]:
    return [finding for event in records for finding in wrong_times(event, scope.site.zone)]


def wrong_times(event: Document, default: Zone) -> list[Finding]:
    subject, id = f"event {event['_id']}", event["_id"]
    zone = zone_of(event)
    found = []
    if zone is None:
        zone = likely_zone(event, default)
        name = f"{event.get('timezone')!r:.60}"
        change = {"timezone": zone.name}
        found.append(Finding(subject, f"timezone is {name}, not a time zone", "timezone", id, change))
    right: Document = {}
    for name in EDGES:
        right |= restored(event, name, zone)
    missing = [name for name in EDGES if name not in right]
    if missing:
        return [*found, _lost(event, right, missing, zone)]
    found += [_differs(event, name, right, zone) for name in EDGES if is_other(event, name, right)]
    found += _wrong_day(event, right, zone)
    if right["end_utc"] < right["start_utc"]:
        problem = f"it ends before it starts ({right['end']}, {right['start']} in {zone.name})"
        found.append(Finding(subject, problem, "order", id, advice=ADVICE))
    return found


def _lost(event: Document, right: Document, missing: Sequence[str], zone: Zone) -> Finding:
    """A time that cannot be known is set to the other one, so that requests can read and correct the event.
    If both are lost, they are set to its publication date, and the event is not public any more."""
    known = next((right[name] for name in EDGES if name in right), zone.to_wall(event["date_utc"]))
    change: Document = {}
    for name in missing:
        wall = zone.edge_of_day(known.date(), EDGES[name]) if event["all_day"] else known
        change |= {name: wall, f"{name}_utc": zone.to_utc(wall)}
    if len(missing) == len(EDGES) and event["status"] != "trash":
        change["status"] = "draft"
    values = ", ".join(f"{name} {change[name]}" for name in change if not name.endswith("_utc"))
    problem = (
        f"{' and '.join(missing)} cannot be known any more; a repair sets {values}, to be corrected by hand"
    )
    return Finding(f"event {event['_id']}", problem, missing[0], event["_id"], change)


def zone_of(event: Document) -> Zone | None:
    try:
        return parse_zone(event["timezone"]) if isinstance(event.get("timezone"), str) else None
    except ValueError:
        return None


def likely_zone(event: Document, default: Zone) -> Zone:
    """The offset of the times from UTC, if both have the same and it is not that of the default zone."""
    names = ("start", "start_utc", "end", "end_utc")
    times = [time for name in names if isinstance(time := event.get(name), datetime)]
    if len(times) < len(names):
        return default
    start, start_utc, end, end_utc = times
    if default.to_wall(start_utc) == start and default.to_wall(end_utc) == end:
        return default
    sign, minutes = "-" if start < start_utc else "+", abs(start - start_utc) // timedelta(minutes=1)
    try:
        offset = parse_zone(f"UTC{sign}{minutes // 60}:{minutes % 60:02}")
    except ValueError:
        return default
    return offset if offset.to_wall(start_utc) == start and offset.to_wall(end_utc) == end else default


def restored(event: Document, name: str, zone: Zone) -> Document:
    """The local time and the instant, with the local time being right if both are there but do not agree."""
    wall, utc = event.get(name), event.get(f"{name}_utc")
    if not isinstance(wall, datetime):
        utc = last_fact(event, f"{name}_utc") or utc
        return {name: zone.to_wall(utc), f"{name}_utc": utc} if isinstance(utc, datetime) else {}
    # Not the other way round: clocks that are set back show a time twice, and either may be meant.
    if isinstance(utc, datetime) and zone.to_wall(utc) == wall:
        return {name: wall, f"{name}_utc": utc}
    utc = zone.to_utc(wall)
    return {name: zone.to_wall(utc), f"{name}_utc": utc}


def is_other(event: Document, name: str, right: Document) -> bool:
    return any(event.get(one) != right[one] for one in (name, f"{name}_utc"))


def _differs(event: Document, name: str, right: Document, zone: Zone) -> Finding:
    stored: dict[str, Any] = {one: event.get(one) for one in (name, f"{name}_utc")}
    problem = (
        f"{name} {stored[name]} in {zone.name} and {name}_utc {stored[f'{name}_utc']} do not agree; "
        f"the right values are {right[name]} and {right[f'{name}_utc']} UTC"
    )
    change = {one: right[one] for one in stored if stored[one] != right[one]}
    return Finding(f"event {event['_id']}", problem, name, event["_id"], change)


def _wrong_day(event: Document, right: Document, zone: Zone) -> list[Finding]:
    """An all-day event covers whole days. If one of its times does, the other one is wrong, else the flag."""
    edges = {name: zone.edge_of_day(right[name].date(), edge) for name, edge in EDGES.items()}
    wrong = [name for name in EDGES if right[name] != edges[name]]
    if event["all_day"] is False or not wrong:
        return []
    change: Document = {"all_day": False}
    if len(wrong) == 1:
        name = wrong[0]
        change = {name: edges[name], f"{name}_utc": zone.to_utc(edges[name])}
    problem = (
        f"it is all-day, but its {' and '.join(wrong)} {'is' if len(wrong) == 1 else 'are'} within a day"
    )
    return [Finding(f"event {event['_id']}", problem, "all_day", event["_id"], change)]


TIMES = RecordCheck(
    "times",
    "the start or end in UTC does not agree with the local time and zone: computed from the local time",
    find,
    lambda kind: kind is EVENT,
    is_required=True,
)
