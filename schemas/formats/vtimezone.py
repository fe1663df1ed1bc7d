"""Time zones as iCalendar components: every change of the clocks in the years that a calendar shows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import MAXYEAR, MINYEAR, UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from icalendar import Component, Timezone, TimezoneDaylight, TimezoneStandard

from schemas.values.zones import Zone

DAY, WEEK = timedelta(days=1), timedelta(weeks=1)
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


class Observance(NamedTuple):
    """What the clocks show from some moment on."""

    offset_before: timedelta
    offset: timedelta
    name: str
    is_daylight: bool


@lru_cache(200)
def vtimezone(zone: Zone, first_year: int, last_year: int) -> Timezone:
    """The component of a zone that is right in these years."""
    first, last = max(first_year - 1, MINYEAR), min(last_year + 1, MAXYEAR - 1)
    state, *later = changes(zone, first, last)
    # Outlook expects only regular changes. What was before them does not matter if they begin early enough.
    is_needed = not later or later[0][0].year > first or first == first_year
    onsets: defaultdict[Observance, list[datetime]] = defaultdict(list)
    for utc, observance in [state, *later] if is_needed else later:
        # A change begins at the time that the clocks show just before it.
        onsets[observance].append(utc + observance.offset_before)
    component = Timezone()
    component.add("tzid", zone.name)
    for observance, times in onsets.items():
        for part in parts(observance, times, last):
            component.add_component(part)
    return component


def parts(observance: Observance, onsets: list[datetime], last_year: int) -> Iterator[Component]:
    """One part with a rule, or one for each onset. A list of onsets (RDATE) would be shorter, but Outlook
    ignores it, and Thunderbird reads only one."""
    rule = yearly_rule(onsets, last_year)
    for onset in onsets[:1] if rule else onsets:
        part = TimezoneDaylight() if observance.is_daylight else TimezoneStandard()
        part.add("dtstart", onset)
        part.add("tzoffsetfrom", observance.offset_before)
        part.add("tzoffsetto", observance.offset)
        part.add("tzname", observance.name)
        if rule:
            part.add("rrule", rule)
        yield part


def yearly_rule(onsets: list[datetime], last_year: int) -> dict[str, Any]:
    """The rule of onsets that are on the same weekday of the same month in all years until the last one."""
    first, *others = onsets
    is_yearly = [one.year for one in onsets] == [*range(first.year, last_year + 1)]
    like_first = [(one.month, one.weekday(), one.time()) for one in onsets]
    if not others or not is_yearly or len(set(like_first)) > 1:
        return {}
    weeks = {(one.day - 1) // 7 + 1 for one in onsets}
    if all((one + WEEK).month != one.month for one in onsets):
        weeks = {-1}
    if len(weeks) > 1:
        return {}
    return {"freq": "yearly", "bymonth": first.month, "byday": f"{weeks.pop()}{WEEKDAYS[first.weekday()]}"}


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
