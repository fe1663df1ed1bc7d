"""Converts the representations of a site to the values that the API accepts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from html import unescape
from typing import Any

from schemas.kind import Document, Kind, reader_of
from schemas.values.zones import parse_zone

HTML_FIELDS = {"description", "excerpt"}
NOT_TAKEN = {"author", "date", "parent", "post_parent", "password", "new_password"}
"""Author ids are those of the site, links are converted, and there are no passwords in representations."""
TIMES = ("start_date", "end_date")
NO_DATE = "0000-00-00"
"""Drafts that were never published have this publication date."""


def values_of(kind: Kind, shown: Mapping[str, Any]) -> Document:
    """The fields of a record that can be imported."""
    names = reader_of(kind.slug_update_schema).fields.keys() - NOT_TAKEN - kind.links.keys()
    values = {name: _value(name, shown[name]) for name in names if name in shown}
    if str(values.get("date_utc", "")).startswith(NO_DATE):
        del values["date_utc"]
    return values | {name: unambiguous_time(name, shown) for name in TIMES if name in values}


def _value(name: str, value: Any) -> Any:
    if isinstance(value, str):  # texts are shown as HTML
        return value if name in HTML_FIELDS else unescape(value)
    if name == "image" and isinstance(value, dict):
        return value.get("url") or value.get("id")
    return bool(value) if name == "ticketed" else value


def unambiguous_time(name: str, shown: Mapping[str, Any]) -> Any:
    """A time of an event; in UTC if the clock shows it twice and the second one is meant."""
    wall, utc = shown[name], shown.get(f"utc_{name}")
    try:
        zone = parse_zone(shown["timezone"])
        times = datetime.fromisoformat(wall), datetime.fromisoformat(str(utc))
        is_second = zone.to_utc(times[0]) != zone.to_utc(times[0], is_last=True) == times[1]
    except (KeyError, TypeError, AttributeError, ValueError):  # validation says what is wrong
        return wall
    return f"{utc}Z" if is_second else wall


def linked_records(shown: Mapping[str, Any], field: str) -> list[Mapping[str, Any]]:
    """The records that an event links to: a list, a single one, or none."""
    found = shown.get(field) or []
    many = found if isinstance(found, list) else [found]
    return [one for one in many if id_of(one)]


def id_of(record: Any) -> int | None:
    """The ID of a record as a site shows it; None if it has none."""
    id = record.get("id") if isinstance(record, dict) else None
    return id if is_id(id) else None


def is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
