"""iCalendar (RFC 5545): what calendar programs subscribe to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import MAXYEAR, MINYEAR, datetime, timedelta, timezone
from typing import Any
from urllib.parse import quote

from schemas.formats.content_lines import compact, component, coordinates, fold, quoted, text
from schemas.formats.format import Feed, Format, address_of, plain_text, venues_of
from schemas.formats.vtimezone import vtimezone
from schemas.kind import Document
from schemas.zones import Zone, parse_zone

REFRESH = "PT1H"
"""How often programs that have subscribed should ask for changes."""
STATUSES = {"publish": "CONFIRMED", "trash": "CANCELLED"}
"""Other statuses are not public; those who see such events get them as tentative."""
ZONE_YEARS = 10
"""Years before and after the first event of a zone for which a long feed defines the zone."""
DAY = timedelta(days=1)
NO_PERIOD = (datetime.max, datetime.min)


def begin(feed: Feed) -> bytes:
    # RFC 7986 also allows a UID here, but vdirsyncer takes the whole calendar for one event then.
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//Kalends//Kalends//EN",
        "CALSCALE:GREGORIAN",
        *(f"{name}:{text(feed.title)}" for name in ("NAME", "X-WR-CALNAME")),
        f"LAST-MODIFIED:{in_utc(feed.updated)}",
        f"REFRESH-INTERVAL;VALUE=DURATION:{REFRESH}",
        f"X-PUBLISHED-TTL:{REFRESH}",
    ]
    zones = [(parse_zone(name), *period) for name, period in sorted(feed.zones.items())]
    defined = (
        vtimezone(one, first.year, last.year) for one, first, last in zones if not has_fixed_offset(one)
    )
    return b"".join((*map(fold, lines), *defined))


def before(feed: Feed, record: Mapping[str, Any]) -> bytes:
    """The time zone of an event if it is the first one in this zone. Times far from it are written in UTC."""
    name, years = record["timezone"], (record["start_utc"].year, record["end_utc"].year)
    if record["all_day"] or name in feed.zones or has_fixed_offset(zone := parse_zone(name)):
        return b""
    first, last = max(years[0] - ZONE_YEARS, MINYEAR), min(years[1] + ZONE_YEARS, MAXYEAR)
    feed.zones[name] = datetime(first, 1, 1), datetime(last, 12, 31)
    return vtimezone(zone, first, last)


def item(feed: Feed, record: Mapping[str, Any]) -> bytes:
    """An event. A cancelled one has no texts, which nobody may read any more: its identifier is enough."""
    modified, is_cancelled = record["modified_utc"], record["status"] == "trash"
    lines = [
        f"UID:{feed.uid(record)}",
        f"DTSTAMP:{in_utc(modified)}",
        f"LAST-MODIFIED:{in_utc(modified)}",
        f"CREATED:{in_utc(min(record['date_utc'], modified))}",
        f"SEQUENCE:{record['version']}",
        f"STATUS:{STATUSES.get(record['status'], 'TENTATIVE')}",
        *times(record, feed),
    ]
    if not is_cancelled:
        lines += [f"SUMMARY:{text(record['title'])}", *details(feed.shown(record))]
    return component("VEVENT", lines)


def times(record: Mapping[str, Any], feed: Feed) -> Iterator[str]:
    """Start and end. Days are dates, and the end is the day after the last one. Without an end, an event ends
    when it starts."""
    start, end = record["start"], record["end"]
    if record["all_day"]:
        yield f"DTSTART;VALUE=DATE:{compact(start.date())}"
        yield f"DTEND;VALUE=DATE:{compact(end.date() + DAY)}"
        return
    zone = parse_zone(record["timezone"])
    yield f"DTSTART{in_zone(zone, start, record['start_utc'], feed)}"
    if record["end_utc"] > record["start_utc"]:
        yield f"DTEND{in_zone(zone, end, record['end_utc'], feed)}"


def in_zone(zone: Zone, wall: datetime, utc: datetime, feed: Feed) -> str:
    """A time in its zone, or in UTC where the feed does not define the zone, or where the clock shows the
    time twice: iCalendar means the first one then, but some programs take the second."""
    first, last = feed.zones.get(zone.name, NO_PERIOD)
    if has_fixed_offset(zone) or not first <= utc <= last or not is_shown_once(zone, wall):
        return f":{in_utc(utc)}"
    return f";TZID={zone.name}:{compact(wall)}"


def is_shown_once(zone: Zone, wall: datetime) -> bool:
    return zone.to_utc(wall) == zone.to_utc(wall, is_last=True)


def in_utc(utc: datetime) -> str:
    return f"{compact(utc)}Z"


def has_fixed_offset(zone: Zone) -> bool:
    return isinstance(zone.info, timezone)


def details(shown: Document) -> Iterator[str]:
    """What the caller may see of an event, besides its title and times."""
    if description := shown["description"]:
        yield f"DESCRIPTION:{text(plain_text(description))}"
        yield f"X-ALT-DESC;FMTTYPE=text/html:{text(description)}"
    if venues := venues_of(shown):
        yield f"LOCATION:{text('; '.join(map(address_of, venues)))}"
    if places := [venue for venue in venues if venue["geo_lat"] is not None]:
        yield f"GEO:{coordinates(places[0]['geo_lat'], places[0]['geo_lng'])}"
    yield from people(shown["organizer"])
    if categories := [text(one["name"]) for one in shown["categories"]]:
        yield f"CATEGORIES:{','.join(categories)}"
    yield f"URL:{shown['url']}"
    if shown["image"] and shown["image"]["url"]:
        yield f"IMAGE;VALUE=URI:{shown['image']['url']}"


def people(organizers: list[Document]) -> Iterator[str]:
    """The first organizer with an e-mail address, without which programs reject an organizer; the others are
    contacts."""
    first = next((one for one in organizers if one["email"]), None)
    if first:
        yield f"ORGANIZER;CN={quoted(first['organizer'])}:mailto:{quote(first['email'], safe='@+')}"
    yield from (f"CONTACT:{text(one['organizer'])}" for one in organizers if one is not first)


ICALENDAR = Format(
    "ics", "text/calendar", ("event",), begin, item, before, fold("END:VCALENDAR"), with_cancelled=True
)
