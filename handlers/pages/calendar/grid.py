"""Arranges events in weeks: each day has rows, and an event of several days keeps its row during a week."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

from handlers.pages.calendar.event_times import ShownEvent
from handlers.pages.calendar.periods import Period, begin_of_week

MAX_ROWS = 4
"""Events that are shown on a day of a month; the others are counted."""


@dataclass(frozen=True)
class Segment:
    """The part of an event that is on one day."""

    event: ShownEvent
    begins: bool
    """Whether its title is shown here: where it starts, and at the beginning of each week."""
    days: int
    """How many days of this week it takes from here on."""

    @property
    def goes_on(self) -> bool:
        return self.days > 1


@dataclass
class GridDay:
    """A day; rows without a segment keep the place of events that began on other days free."""

    day: date
    is_outside: bool
    """Whether it is in another month than the one that is shown."""
    rows: list[Segment | None] = field(default_factory=list)
    hidden: int = 0
    """Number of events that are not shown."""

    @property
    def total(self) -> int:
        return self.hidden + sum(row is not None for row in self.rows)


def weeks_of(
    period: Period,
    events: Iterable[ShownEvent],
    first_weekday: int,
    *,
    max_rows: int = MAX_ROWS,
    numbers: Mapping[date, int] | None = None,
) -> list[list[GridDay]]:
    """The weeks of a period, from the beginning of its first to the end of its last. If there are too many
    events to show, only their numbers are given."""
    shown, weeks = list(events), []
    first = begin_of_week(period.first, first_weekday)
    while first <= period.last:
        weeks.append(_week(first, period, shown, max_rows))
        first += timedelta(7)
    for day, number in (numbers or {}).items():
        at = (day - begin_of_week(period.first, first_weekday)).days
        weeks[at // 7][at % 7].hidden = number
    return weeks


def _week(first: date, period: Period, events: Sequence[ShownEvent], max_rows: int) -> list[GridDay]:
    days = [first + timedelta(at) for at in range(7)]
    week = [GridDay(day, not period.first <= day <= period.last) for day in days]
    here = [event for event in events if event.is_within(first, days[-1])]
    here.sort(key=lambda event: (not event.has_several_days, not event.sticky, event.first_day, event.start))
    for event in here:
        begin = max((event.first_day - first).days, 0)
        _place(event, week[begin : (event.last_day - first).days + 1], max_rows)
    return week


def _place(event: ShownEvent, days: Sequence[GridDay], max_rows: int) -> None:
    """Add an event to the first row that is free on all its days."""
    row = 0
    while any(row < len(day.rows) and day.rows[row] for day in days):
        row += 1
    for at, day in enumerate(days):
        if row >= max_rows:
            day.hidden += 1
            continue
        day.rows += [None] * (row + 1 - len(day.rows))
        day.rows[row] = Segment(event, at == 0, len(days) - at)
