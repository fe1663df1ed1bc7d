"""When an event is: wall clock, zone and instants, kept in step."""

from __future__ import annotations

from datetime import datetime, time
from typing import Any

from schemas.dates import Moment
from schemas.errors import InvalidFields
from schemas.language import Text
from schemas.site import Site
from schemas.zones import Zone, parse_zone

TIMED = ("start_date", "end_date", "timezone", "all_day")


def settle_times(changes: dict[str, Any], stored: dict[str, Any] | None, site: Site) -> dict[str, Any]:
    """The stored times of an event after the changes; an end alone is checked against the other one."""
    if stored is not None and not any(name in changes for name in TIMED):
        return {}
    if stored is None and not {"start_date", "end_date"} <= changes.keys():
        return {}  # one of them was refused
    kept = parse_zone(stored["timezone"]) if stored and "timezone" not in changes else site.zone
    zone = changes.get("timezone") or kept
    all_day = changes["all_day"] if "all_day" in changes else (stored or {}).get("all_day")
    start = _wall("start_date", changes, stored, zone, time(0, 0, 0) if all_day else None)
    end = _wall("end_date", changes, stored, zone, time(23, 59, 59) if all_day else None)
    start_utc, end_utc = zone.to_utc(start), zone.to_utc(end)
    if end_utc < start_utc:
        raise InvalidFields({"end_date": Text("Must not be before the start.")})
    return {
        "all_day": bool(all_day),
        "timezone": zone.name,
        "start": start,
        "end": end,
        "start_utc": start_utc,
        "end_utc": end_utc,
    }


def _wall(
    name: str, changes: dict[str, Any], stored: dict[str, Any] | None, zone: Zone, edge: time | None
) -> datetime:
    """What the clock in the zone shows at this end; all-day events reach to the day's edge."""
    moment = changes.get(name) or Moment(wall=(stored or {})[name.removesuffix("_date")])
    try:
        return zone.edge_of_day(moment.day(zone), edge) if edge else moment.in_zone(zone)
    except ValueError as error:
        raise InvalidFields({name: error.args[0]}) from None
