"""Time zones as iCalendar components: every change of the clocks in the years that a calendar shows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from schemas.formats.content_lines import compact, component, fold, text
from schemas.zones import Zone

DAY = timedelta(days=1)


class Observance(NamedTuple):
    """What the clocks show from some moment on."""

    offset_before: timedelta
    offset: timedelta
    name: str
    is_daylight: bool


@lru_cache(200)
def vtimezone(zone: Zone, first_year: int, last_year: int) -> bytes:
    """The component of a zone that is right in these years."""
    onsets: defaultdict[Observance, list[str]] = defaultdict(list)
    for utc, observance in changes(zone, max(first_year - 1, 1), min(last_year + 1, 9998)):
        # A change begins at the time that the clocks show just before it.
        onsets[observance].append(compact(utc + observance.offset_before))
    parts = (part(observance, times) for observance, times in onsets.items())
    return b"".join((fold("BEGIN:VTIMEZONE"), fold(f"TZID:{zone.name}"), *parts, fold("END:VTIMEZONE")))


def part(observance: Observance, times: list[str]) -> bytes:
    """All periods with the same offset, name and offset before."""
    lines = [
        f"DTSTART:{times[0]}",
        f"TZOFFSETFROM:{offset(observance.offset_before)}",
        f"TZOFFSETTO:{offset(observance.offset)}",
        f"TZNAME:{text(observance.name)}",
    ]
    if times[1:]:
        lines.append(f"RDATE:{','.join(times[1:])}")
    return component("DAYLIGHT" if observance.is_daylight else "STANDARD", lines)


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
