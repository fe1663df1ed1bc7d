"""Converts an event of an iCalendar file to the values that the API accepts."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import unquote

from icalendar import Event, vGeo
from icalendar.timezone import is_utc, tzid_from_tzinfo

from schemas.kind import Document
from schemas.text_fields import EMAIL, URL
from schemas.values.dates import show
from schemas.values.zones import Zone, parse_zone
from service.imports.ical.series import many, moment
from service.imports.ical.texts import description_of, plain, text_of
from service.imports.item import without_empty

NOT_PUBLIC = {"PRIVATE", "CONFIDENTIAL"}
CALENDAR_ADDRESS = "calendar.google.com"
"""Google gives every calendar an address; nobody reads mail there."""


def values_of(event: Event, zone: Zone) -> Document:
    """The fields of an event; times without a zone are in `zone`."""
    found = times_of(event, zone)
    found["title"] = text_of(event, "SUMMARY") or None
    found["description"] = description_of(event)
    found["categories"] = [plain(str(one)) for group in many(event.get("CATEGORIES")) for one in group.cats]
    found["organizer"] = organizers_of(event)
    found["image"] = image_of(event)
    location, found["website"] = text_of(event, "LOCATION"), web_address(text_of(event, "URL"))
    if web_address(location):  # an online event
        found["venue"], found["website"] = [], found["website"] or location
    else:
        found["venue"] = venue_of(event, location)
    if text_of(event, "CLASS").upper() in NOT_PUBLIC:
        found["status"] = "private"
    return found


def times_of(event: Event, zone: Zone) -> Document:
    start = moment(event, "DTSTART")
    end = moment(event, "DTEND") if "DTEND" in event else _after(start, _duration(event))
    begin, is_marked = zone_of(start, zone), text_of(event, "X-MICROSOFT-CDO-ALLDAYEVENT").upper() == "TRUE"
    if not isinstance(start, datetime) or (is_marked and isinstance(end, datetime)):
        first, last = day_of(start, begin), day_of(end, begin) - timedelta(days=1)
        days = {"start_date": first.isoformat(), "end_date": max(first, last).isoformat()}
        return {**days, "all_day": True, "timezone": begin.name}
    return {
        "start_date": shown(start, begin),
        "end_date": shown(end, begin),
        "all_day": False,
        "timezone": begin.name,
    }


def day_of(at: date, zone: Zone) -> date:
    """The day of a time in a zone. Some programs write the times of whole days in UTC."""
    if not isinstance(at, datetime):
        return at
    return (at.astimezone(zone.info) if at.tzinfo else at).date()


def _duration(event: Event) -> timedelta:
    duration = getattr(event.get("DURATION"), "dt", None)
    return duration if isinstance(duration, timedelta) else timedelta(0)


def _after(start: date, duration: timedelta) -> date:
    """The end of a duration: of hours by the time that passes, of whole days by the clock."""
    if not isinstance(start, datetime) or start.tzinfo is None or not duration % timedelta(days=1):
        return start + duration
    return (start.astimezone(UTC) + duration).astimezone(start.tzinfo)


def zone_of(at: date, default: Zone) -> Zone:
    """The zone of a time; if it has no name that is known here, the offset that it has then."""
    if not isinstance(at, datetime) or at.tzinfo is None or is_utc(at):
        return default
    try:
        return parse_zone(tzid_from_tzinfo(at.tzinfo) or "")
    except ValueError:
        minutes = int((at.utcoffset() or timedelta()).total_seconds()) // 60
        hours, rest = divmod(abs(minutes), 60)
        return parse_zone(f"UTC{'-' if minutes < 0 else '+'}{hours}" + (f":{rest:02}" if rest else ""))


def shown(at: date, zone: Zone) -> str:
    """A time as it is sent to the API: in the zone of the event if it has no other, else as an instant."""
    if not isinstance(at, datetime):
        return at.isoformat()
    if at.tzinfo is None:
        return show(at)
    utc = at.astimezone(UTC).replace(tzinfo=None)
    wall = at.replace(tzinfo=None)
    return show(wall) if zone.to_utc(wall) == utc else f"{show(utc)}Z"


def venue_of(event: Event, location: str) -> list[Document]:
    """The place: its name is the first line, or what is before the first comma; the rest is its address."""
    if not location:
        return []
    name, _, address = location.partition("\n" if "\n" in location else ",")
    place: Document = {
        "venue": name.strip() or location,
        "address": ", ".join(address.split("\n")).strip(" ,"),
    }
    if isinstance(geo := event.get("GEO"), vGeo):
        place |= {"geo_lat": geo.latitude, "geo_lng": geo.longitude}
    return [without_empty(place)]


def organizers_of(event: Event) -> list[Document]:
    found = [_organizer(value) for value in many(event.get("ORGANIZER"))]
    found += [{"organizer": str(value).strip()} for value in many(event.get("CONTACT"))]
    return [one for one in found if one.get("organizer")]


def _organizer(value: Any) -> Document:
    address = re.sub(r"^(mailto:)+", "", str(value).strip(), flags=re.IGNORECASE)
    is_mail = EMAIL.fullmatch(address) is not None and not address.endswith(CALENDAR_ADDRESS)
    name = unquote(str(value.params.get("CN", ""))).strip()  # the reference service encodes it
    return without_empty(
        {"organizer": name or (address if is_mail else ""), "email": address if is_mail else ""}
    )


def image_of(event: Event) -> str | None:
    pictures = many(event.get("IMAGE"))
    attached = [
        one for one in many(event.get("ATTACH")) if one.params.get("FMTTYPE", "").startswith("image/")
    ]
    return next((found for one in (*pictures, *attached) if (found := web_address(str(one)))), None)


def web_address(text: str) -> str | None:
    return text if URL.fullmatch(text) else None
