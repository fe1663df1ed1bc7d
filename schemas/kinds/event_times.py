"""Start and end of an event: keeps wall-clock time, time zone and UTC instants consistent."""

from __future__ import annotations

from datetime import datetime, time
from typing import Any

from schemas.errors import InvalidFields
from schemas.language import Text
from schemas.site import Site
from schemas.values.dates import Moment
from schemas.values.zones import Zone, parse_zone

TIME_FIELDS = ("start_date", "end_date", "timezone", "all_day")


def normalize_times(changes: dict[str, Any], stored: dict[str, Any] | None, site: Site) -> dict[str, Any]:
    """The times to store after the changes; a start or end sent alone is checked against the stored other."""
    if stored is not None and not any(name in changes for name in TIME_FIELDS):
        return {}
    if stored is None and not {"start_date", "end_date"} <= changes.keys():
        return {}  # one of them was invalid
    default = parse_zone(stored["timezone"]) if stored and "timezone" not in changes else site.zone
    zone = changes.get("timezone") or default
    all_day = changes["all_day"] if "all_day" in changes else (stored or {}).get("all_day")
    start, start_utc = _edge("start_date", changes, stored, zone, time(0, 0, 0) if all_day else None)
    end, end_utc = _edge("end_date", changes, stored, zone, time(23, 59, 59) if all_day else None)
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


def _edge(
    name: str, changes: dict[str, Any], stored: dict[str, Any] | None, zone: Zone, edge: time | None
) -> tuple[datetime, datetime]:
    """The wall-clock time and the UTC instant of the start or end; for all-day events, the edge of the
    day."""
    field = name.removesuffix("_date")
    known = stored or {}
    moment = changes.get(name) or Moment(wall=known[field])
    try:
        if edge:
            wall = zone.edge_of_day(moment.day(zone), edge)
            return wall, zone.to_utc(wall)
        wall = moment.in_zone(zone)
        # An unchanged wall-clock time keeps its instant, which in a DST overlap may be the second occurrence.
        stays = stored and moment.wall and zone.to_wall(known[f"{field}_utc"]) == wall
        return wall, known[f"{field}_utc"] if stays else moment.utc(zone)
    except ValueError as error:
        raise InvalidFields({name: error.args[0]}) from None
