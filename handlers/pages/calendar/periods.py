"""The views of the calendar, and the days that each shows."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date, timedelta

from schemas.errors import NoRoute
from schemas.language import Text

VIEWS = {
    "month": Text("Month"),
    "week": Text("Week"),
    "day": Text("Day"),
    "list": Text("List"),
    "past": Text("Past events"),
    "map": Text("Map"),
}
"""View -> its name. The list shows what is still to come from a day on."""
YEARS = range(1900, 2200)
WEDNESDAY = 2
DAY = re.compile(r"(\d{4})-(\d\d)(?:-(\d\d))?", re.ASCII)


@dataclass(frozen=True)
class Period:
    """The days that a view shows, and the days with which the periods before and after it begin."""

    view: str
    first: date
    last: date
    previous: date | None = None
    next: date | None = None


def parse_day(text: str) -> date:
    """The day in a path, `2027-06-05`; a month is its first day."""
    found = DAY.fullmatch(text)
    try:
        day = date(int(found[1]), int(found[2]), int(found[3] or 1)) if found else None
    except ValueError:
        day = None
    if day is None or day.year not in YEARS:
        raise NoRoute(Text("There is no calendar for this date."))
    return day


def period_of(view: str, day: date, first_weekday: int) -> Period:
    """The period of a view that contains a day."""
    if view == "month":
        first = day.replace(day=1)
        after = next_month(first)
        return Period(
            view, first, after - timedelta(1), within((first - timedelta(1)).replace(day=1)), within(after)
        )
    if view == "week":
        first = begin_of_week(day, first_weekday)
        return Period(
            view, first, first + timedelta(6), within(first - timedelta(7)), within(first + timedelta(7))
        )
    if view == "day":
        return Period(view, day, day, within(day - timedelta(1)), within(day + timedelta(1)))
    return Period(view, day, day)


def within(day: date) -> date | None:
    """The day, if there is a calendar for it."""
    return day if day.year in YEARS else None


def begin_of_week(day: date, first_weekday: int) -> date:
    return day - timedelta((day.weekday() - first_weekday) % 7)


def whole_weeks(period: Period, first_weekday: int) -> Period:
    """The weeks that a period is drawn in: those of a month have days of the months before and after it."""
    first, last = (begin_of_week(day, first_weekday) for day in (period.first, period.last))
    return replace(period, first=first, last=last + timedelta(6))


def shared_day(view: str, day: date | None, first_weekday: int) -> date | None:
    """A day by which every language shows the same period. Weeks begin on Sunday or Monday: those that have
    the same Wednesday differ least."""
    if view != "week" or day is None:
        return day
    return within(begin_of_week(day, first_weekday) + timedelta((WEDNESDAY - first_weekday) % 7)) or day


def next_month(first: date) -> date:
    return (first + timedelta(31)).replace(day=1)


def path_of(view: str, day: date | None) -> str:
    """The path of a view: `/events/month/2027-06/`; without a day it shows today."""
    if day is None:
        return f"/events/{view}/"
    return f"/events/{view}/{day.isoformat()[: 7 if view == 'month' else None]}/"
