"""iCalendar (RFC 5545): what calendar programs subscribe to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, timedelta, timezone
from typing import Any
from urllib.parse import quote

from icalendar import Calendar, Event, vCalAddress, vText

from schemas.formats.content_lines import coordinates, text, to_bytes
from schemas.formats.format import Feed, Format, address_of, plain_text, shortened, venues_of
from schemas.formats.vtimezone import vtimezone
from schemas.kind import Document
from schemas.values.zones import Zone, parse_zone

REFRESH = timedelta(hours=1)
"""How often programs that have subscribed should ask for changes."""
STATUSES = {"publish": "CONFIRMED", "trash": "CANCELLED"}
"""Other statuses are not public; those who see such events get them as tentative."""
ZONE_YEARS = 10
"""Years before and after the first event of a zone for which a long feed defines the zone."""
NO_PERIOD = (datetime.max, datetime.min)
END = b"END:VCALENDAR\r\n"


def begin(feed: Feed) -> bytes:
    # RFC 7986 also allows a UID here, but vdirsyncer takes the whole calendar for one event then.
    calendar = Calendar()
    calendar.add("version", "2.0")
    calendar.add("prodid", "-//Kalends//Kalends//EN")
    calendar.add("calscale", "GREGORIAN")
    for name in ("name", "x-wr-calname"):
        calendar.add(name, feed.title)
    calendar.add("last-modified", feed.updated.replace(tzinfo=UTC))
    calendar.add("refresh-interval", REFRESH, parameters={"VALUE": "DURATION"})
    calendar.add("x-published-ttl", "PT1H")
    for name, (first, last) in sorted(feed.zones.items()):
        if first <= last and not has_fixed_offset(zone := parse_zone(name)):
            calendar.add_component(vtimezone(zone, first.year, last.year))
    return to_bytes(calendar).removesuffix(END)


def before(feed: Feed, record: Mapping[str, Any]) -> bytes:
    """The time zone of an event if it is the first one in this zone. Times far from it are written in UTC."""
    name, years = record["timezone"], (record["start_utc"].year, record["end_utc"].year)
    if record["all_day"] or name in feed.zones or has_fixed_offset(zone := parse_zone(name)):
        return b""
    around = max(years[0] - ZONE_YEARS, MINYEAR), min(years[1] + ZONE_YEARS, MAXYEAR)
    period = datetime(around[0], 1, 1), datetime(around[1], 12, 31)
    feed.zones[name] = first, last = shortened(period, feed.updated)
    return to_bytes(vtimezone(zone, first.year, last.year)) if first <= last else b""


def item(feed: Feed, record: Mapping[str, Any]) -> bytes:
    """An event. A cancelled one has no texts, which nobody may read any more: its identifier is enough."""
    event, is_cancelled = Event(), record["status"] == "trash"
    event.add("uid", str(feed.uid(record)))
    event.add("dtstamp", record["modified_utc"].replace(tzinfo=UTC))
    event.add("last-modified", record["modified_utc"].replace(tzinfo=UTC))
    event.add("created", min(record["date_utc"], record["modified_utc"]).replace(tzinfo=UTC))
    event.add("sequence", record["version"])
    event.add("status", STATUSES.get(record["status"], "TENTATIVE"))
    for name, value in times(record, feed):
        event.add(name, value)
    if not is_cancelled:
        event.add("summary", text(record["title"]))
        add_details(event, feed.shown(record))
    return to_bytes(event)


def times(record: Mapping[str, Any], feed: Feed) -> Iterator[tuple[str, date]]:
    """Start and end. Days are dates, and the end is the day after the last one. Without an end, an event ends
    when it starts."""
    start, end = record["start"], record["end"]
    if record["all_day"]:
        yield "dtstart", start.date()
        if end.date() < date.max:
            yield "dtend", end.date() + timedelta(days=1)
        return
    zone = parse_zone(record["timezone"])
    yield "dtstart", in_zone(zone, start, record["start_utc"], feed)
    if record["end_utc"] > record["start_utc"]:
        yield "dtend", in_zone(zone, end, record["end_utc"], feed)


def in_zone(zone: Zone, wall: datetime, utc: datetime, feed: Feed) -> datetime:
    """A time in its zone, or in UTC where the feed does not define the zone, or where the clock shows the
    time twice: iCalendar means the first one then, but some programs take the second."""
    first, last = feed.zones.get(zone.name, NO_PERIOD)
    if has_fixed_offset(zone) or not first <= utc <= last or not is_shown_once(zone, wall):
        return utc.replace(tzinfo=UTC)
    return wall.replace(tzinfo=zone.info)


def is_shown_once(zone: Zone, wall: datetime) -> bool:
    return zone.to_utc(wall) == zone.to_utc(wall, is_last=True)


def has_fixed_offset(zone: Zone) -> bool:
    return isinstance(zone.info, timezone)


def add_details(event: Event, shown: Document) -> None:
    """What the caller may see of an event, besides its title and times."""
    if description := shown["description"]:
        event.add("description", text(plain_text(description)))
        event["X-ALT-DESC"] = vText(text(description), params={"FMTTYPE": "text/html"})
    if venues := venues_of(shown):
        event.add("location", text("; ".join(map(address_of, venues))))
    if places := [venue for venue in venues if venue["geo_lat"] is not None]:
        event["geo"] = coordinates(places[0]["geo_lat"], places[0]["geo_lng"])
    add_people(event, shown["organizer"])
    if categories := [text(one["name"]) for one in shown["categories"]]:
        event.add("categories", categories)
    event.add("url", shown["url"])
    if shown["image"] and shown["image"]["url"]:
        event.add("image", shown["image"]["url"], parameters={"VALUE": "URI"})


def add_people(event: Event, organizers: list[Document]) -> None:
    """The first organizer with an e-mail address, without which programs reject an organizer; the others are
    contacts."""
    first = next((one for one in organizers if one["email"]), None)
    if first:
        address = vCalAddress(f"mailto:{quote(first['email'], safe='@+')}")
        address.params["CN"] = " ".join(text(first["organizer"]).replace('"', "'").split())
        event["organizer"] = address
    for other in (one for one in organizers if one is not first):
        event.add("contact", text(other["organizer"]))


ICALENDAR = Format("ics", "text/calendar", ("event",), begin, item, before, END, with_cancelled=True)
