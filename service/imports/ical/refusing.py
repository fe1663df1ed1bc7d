"""Refuses events that cannot be imported, and says why."""

from __future__ import annotations

from datetime import datetime

from icalendar import Event

from schemas import EVENT
from service.imports.ical.components import Component
from service.imports.ical.rules import Unreadable
from service.imports.ical.series import many
from service.imports.item import Refusal

BROKEN = (Unreadable, ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, OSError)
"""What libraries raise for events that are not valid."""
TIMES = {"DTSTART", "DTEND", "DURATION", "RRULE", "RDATE", "EXDATE", "RECURRENCE-ID"}


def refuse_broken(component: Component) -> None:
    if component.problem:
        raise Unreadable(component.problem)


def refuse_invalid(event: Event) -> None:
    """Refuse an event whose times are not valid; other invalid properties are left out."""
    for name, message in event.errors:
        if name in TIMES:
            raise Unreadable(f"{name}: {message}")
    for name in TIMES & event.keys():
        for value in many(event[name]):
            at = getattr(value, "dt", None)
            if "TZID" in getattr(value, "params", ()) and isinstance(at, datetime) and at.tzinfo is None:
                zone = value.params["TZID"]
                raise Unreadable(f"{name}: unknown time zone {zone}, and the file does not define it")


def refusal(line: int, error: Exception) -> Refusal:
    """What libraries say about other errors than those in values is not understood without the event."""
    reason = " ".join(str(error).split())[:300]
    is_said = isinstance(error, Unreadable | ValueError) and reason
    return Refusal(EVENT, f"line {line}", reason if is_said else f"not a valid event ({reason or error!r})")
