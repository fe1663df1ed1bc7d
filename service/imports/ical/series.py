"""Expands series of events into their occurrences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time
from typing import Any

import recurring_ical_events
from icalendar import Calendar, Event

from service.imports.ical.rules import Unreadable, check_rule
from service.imports.item import key_of

MAX_OCCURRENCES = 5000
"""Occurrences of one series in the window."""
BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
NO_OCCURRENCE = bytes(8)
"""Ends the key of an event that is not in a series."""


def occurrences(events: Sequence[Event], since: date, until: date) -> list[Event]:
    """The occurrences of a series in a window of time, each with its RECURRENCE-ID."""
    for event in events:
        for rule in many(event.get("RRULE")):
            check_rule(rule, moment(event, "DTSTART"), until)
    calendar = Calendar()
    for event in events:
        calendar.add_component(event)
    found: list[Event] = recurring_ical_events.of(calendar).between(since, until)
    if len(found) > MAX_OCCURRENCES:
        raise Unreadable(
            f"RRULE: more than {MAX_OCCURRENCES} occurrences until {until}; choose a nearer --until"
        )
    return found


def many(value: Any) -> Iterable[Any]:
    """The values of a property that may be missing or given several times."""
    return value if isinstance(value, list) else [] if value is None else [value]


def moment(event: Event, name: str) -> date:
    """A time of an event: a date, or a date with a time."""
    if isinstance(event.get(name), list):
        raise Unreadable(f"{name} is there more than once")
    found = getattr(event.get(name), "dt", None)
    if not isinstance(found, date):
        raise Unreadable(
            f"{name}: not a valid date: {event[name]}" if name in event else f"{name} is missing"
        )
    return found


def occurrence_key(uid: str, at: date | None) -> bytes:
    """The key of an event, or of the occurrence of a series that would begin at this time. The keys of a
    series are in the order of these times."""
    if at is None:
        return key_of("ical", uid) + NO_OCCURRENCE
    begin = at if isinstance(at, datetime) else datetime.combine(at, time())
    utc = begin.replace(tzinfo=begin.tzinfo or UTC)
    return key_of("ical", uid) + (1 + int((utc - BEGINNING).total_seconds())).to_bytes(8, signed=True)
