"""Time zones as iCalendar components: every change of the clocks in the years that a calendar shows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import MAXYEAR, MINYEAR, UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from schemas.formats.content_lines import compact, component, fold, text
from schemas.zones import Zone

DAY, WEEK = timedelta(days=1), timedelta(weeks=1)
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


class Observance(NamedTuple):
    """What the clocks show from some moment on."""

    offset_before: timedelta
    offset: timedelta
    name: str
    is_daylight: bool


@lru_cache(200)
def vtimezone(zone: Zone, first_year: int, last_year: int) -> bytes:
    """The component of a zone that is right in these years."""
    first, last = max(first_year - 1, MINYEAR), min(last_year + 1, MAXYEAR - 1)
    state, *later = changes(zone, first, last)
    # Outlook expects only regular changes. What was before them does not matter if they begin early enough.
    is_needed = not later or later[0][0].year > first or first == first_year
    onsets: defaultdict[Observance, list[datetime]] = defaultdict(list)
    for utc, observance in [state, *later] if is_needed else later:
        # A change begins at the time that the clocks show just before it.
        onsets[observance].append(utc + observance.offset_before)
    parts = (part for observance, times in onsets.items() for part in written(observance, times, last))
    return b"".join((fold("BEGIN:VTIMEZONE"), fold(f"TZID:{zone.name}"), *parts, fold("END:VTIMEZONE")))


def written(observance: Observance, onsets: list[datetime], last_year: int) -> Iterator[bytes]:
    """One part with a rule, or one for each onset. A list of onsets (RDATE) would be shorter, but Outlook
    ignores it, and Thunderbird reads only one."""
    rule = yearly_rule(onsets, last_year)
    for onset in onsets[:1] if rule else onsets:
        lines = [
            f"DTSTART:{compact(onset)}",
            f"TZOFFSETFROM:{offset(observance.offset_before)}",
            f"TZOFFSETTO:{offset(observance.offset)}",
            f"TZNAME:{text(observance.name)}",
        ]
        yield component("DAYLIGHT" if observance.is_daylight else "STANDARD", lines + rule)


def yearly_rule(onsets: list[datetime], last_year: int) -> list[str]:
    """The rule of onsets that are on the same weekday of the same month in all years until the last one."""
    first, *others = onsets
    is_yearly = [one.year for one in onsets] == [*range(first.year, last_year + 1)]
    like_first = [(one.month, one.weekday(), one.time()) for one in onsets]
    if not others or not is_yearly or len(set(like_first)) > 1:
        return []
    weeks = {(one.day - 1) // 7 + 1 for one in onsets}
    if all((one + WEEK).month != one.month for one in onsets):
        weeks = {-1}
    if len(weeks) > 1:
        return []
    return [f"RRULE:FREQ=YEARLY;BYMONTH={first.month};BYDAY={weeks.pop()}{WEEKDAYS[first.weekday()]}"]


def offset(ahead: timedelta) -> str:
    """An offset from UTC: +0100, or +001730 where local mean time had seconds."""
    minutes, seconds = divmod(abs(int(ahead.total_seconds())), 60)
    sign = "-" if ahead < timedelta() else "+"
    return f"{sign}{minutes // 60:02}{minutes % 60:02}" + (f"{seconds:02}" if seconds else "")


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
