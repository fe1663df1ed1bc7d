"""Refuses recurrence rules whose occurrences would take very long to compute."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from math import prod

from dateutil.rrule import rrulestr
from icalendar import vRecur

MAX_PER_DAY = 24
FREQUENT = {"SECONDLY", "MINUTELY"}
MAX_CANDIDATES = 200_000
"""Times between the start of a rule and the end of the window: 22 years of hours, or 547 years of days."""
CYCLE_DAYS, CYCLE_YEARS, LAST_YEAR = 146_097, 400, 9999
"""Dates and weekdays repeat after so many days, which are 400 years."""


class Unreadable(Exception):
    """An event cannot be imported; the message says why."""


def check_rule(rule: vRecur, start: date, until: date) -> None:
    """Raise Unreadable for a rule that repeats too often, for too long, or never."""
    times = prod(len(rule[name]) for name in ("BYHOUR", "BYMINUTE", "BYSECOND") if name in rule)
    frequencies = {str(name).upper() for name in rule.get("FREQ", ())}
    if not frequencies:
        raise Unreadable("RRULE: FREQ is missing")
    if FREQUENT & frequencies or times > MAX_PER_DAY:
        raise Unreadable(f"RRULE: repeats more than {MAX_PER_DAY} times a day")
    if any(interval < 1 for interval in rule.get("INTERVAL", ())):
        raise Unreadable("RRULE: INTERVAL must be at least 1")
    is_hourly = "HOURLY" in frequencies
    if is_hourly and "BYSETPOS" in rule:
        raise Unreadable("RRULE: BYSETPOS chooses nothing with FREQ=HOURLY")
    days = until.toordinal() - start.toordinal()
    if days * (MAX_PER_DAY if is_hourly else times) > MAX_CANDIDATES:
        raise Unreadable(f"RRULE: starts in {start.year}, too early for a rule that repeats so often")
    if not _occurs(rule, start):
        raise Unreadable("RRULE: never occurs")


def _occurs(rule: vRecur, start: date) -> bool:
    """Whether a rule ever occurs. The library searches for the first occurrence until the year 9999, so the
    search starts as late as a full cycle of the rule allows."""
    years = CYCLE_YEARS * max(rule.get("INTERVAL", (1,)))
    cycles = max(0, (LAST_YEAR - start.year) // years - 1)
    clock = start.time() if isinstance(start, datetime) else time()
    day = date.fromordinal(start.toordinal()) + cycles * (years // CYCLE_YEARS) * timedelta(CYCLE_DAYS)
    endless = vRecur({name: rule[name] for name in rule if name not in ("COUNT", "UNTIL")})
    text: bytes = endless.to_ical()  # type: ignore[no-untyped-call]
    try:
        found = rrulestr(text.decode(), dtstart=datetime.combine(day, clock))
        return next(iter(found), None) is not None
    except ValueError as error:
        raise Unreadable(f"RRULE: {error}") from None
