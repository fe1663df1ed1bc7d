"""Time zones as iCalendar components: every change of the clocks in the years that a calendar shows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from icalendar import Timezone, TimezoneDaylight, TimezoneStandard

from schemas.zones import Zone

DAY = timedelta(days=1)


class Observance(NamedTuple):
    """What the clocks show from some moment on."""

    offset_before: timedelta
    offset: timedelta
    name: str
    is_daylight: bool


@lru_cache(200)
def vtimezone(zone: Zone, first_year: int, last_year: int) -> Timezone:
    """The component of a zone that is right in these years."""
    onsets: defaultdict[Observance, list[datetime]] = defaultdict(list)
    for utc, observance in changes(zone, max(first_year - 1, 1), min(last_year + 1, 9998)):
        # A change begins at the time that the clocks show just before it.
        onsets[observance].append(utc + observance.offset_before)
    component = Timezone()
    component.add("tzid", zone.name)
    for observance, (first, *later) in onsets.items():
        part = TimezoneDaylight() if observance.is_daylight else TimezoneStandard()
        part.add("dtstart", first)
        if later:
            part.add("rdate", later)
        part.add("tzoffsetfrom", observance.offset_before)
        part.add("tzoffsetto", observance.offset)
        part.add("tzname", observance.name)
        component.add_component(part)
    return component


def changes(zone: Zone, first_year: int, last_year: int) -> Iterator[tuple[datetime, Observance]]:
    """The state at the beginning of the first year, and each change until the end of the last one."""
    utc, end = datetime(first_year, 1, 2), datetime(last_year, 12, 31)
    before = observed(zone, utc)
    yield utc, Observance(before[0], *before)
    while utc < end:
        if observed(zone, utc + DAY) != before:
            changed = first_change(zone, utc, utc + DAY)
            after = observed(zone, changed)
            yield changed, Observance(before[0], *after)
            before = after
            utc = changed
        else:
            utc += DAY


def first_change(zone: Zone, early: datetime, late: datetime) -> datetime:
    """The first second of a change between two instants, found by bisection."""
    before = observed(zone, early)
    while late - early > timedelta(seconds=1):
        middle = early + timedelta(seconds=(late - early) // timedelta(seconds=2))
        if observed(zone, middle) == before:
            early = middle
        else:
            late = middle
    return late


def observed(zone: Zone, utc: datetime) -> tuple[timedelta, str, bool]:
    """The offset, its name, and whether it is daylight saving time."""
    local = utc.replace(tzinfo=UTC).astimezone(zone.info)
    return local.utcoffset() or timedelta(), local.tzname() or zone.name, bool(local.dst())
