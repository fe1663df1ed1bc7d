"""Histogram of a list's events by day, from which the total of any date range is computed: only days that are
partly in the range are counted by MongoDB."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from service.store.event_changes import Move
from service.store.lists.predicates import COMPARISONS
from service.store.lists.query import Condition

START, END = FIELDS = ("start_utc", "end_utc")
DAY = timedelta(days=1)
LAST = DAY - timedelta(seconds=1)
"""Offset of the last second of a day; all times are whole seconds."""
EPOCH = datetime(1970, 1, 1)
EVER = range((datetime.min - EPOCH) // DAY, (datetime.max - EPOCH) // DAY + 1)


def day_of(moment: datetime) -> int:
    return (moment - EPOCH) // DAY


def grouped(conditions: list[Condition]) -> list[dict[str, Any]]:
    """The pipeline that counts events by start day and end day."""
    days = {
        field: {
            "$floor": {"$divide": [{"$subtract": [f"${field}", EPOCH]}, DAY // timedelta(milliseconds=1)]}
        }
        for field in FIELDS
    }
    return [{"$match": {"$and": conditions}}, {"$group": {"_id": days, "n": {"$sum": 1}}}]


class Days:
    """Numbers of events by start day and end day in UTC."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._ends: defaultdict[int, Counter[int]] = defaultdict(Counter)
        for row in rows:
            self._ends[int(row["_id"][START])][int(row["_id"][END])] = row["n"]

    def shift(self, move: Move) -> None:
        """Count an event that entered or left the list."""
        self._ends[day_of(move.facts[START])][day_of(move.facts[END])] += move.step

    def within(self, starts: range, ends: range) -> int:
        """The number of events with a start day and an end day in these ranges."""
        found = (on for day, on in self._ends.items() if day in starts)
        return sum(number for on in found for day, number in on.items() if day in ends)


class Stretch:
    """A date range, as whole days and partly covered days."""

    def __init__(self, dates: Iterable[Condition]) -> None:
        self.days = dict.fromkeys(FIELDS, EVER)
        """For start and end, the days that are wholly in the range."""
        self._parts: dict[tuple[bool, int], str] = {}
        for condition in dates:
            for field, bounds in condition.items():
                for operator, bound in bounds.items():
                    self._bound(field, operator, bound)

    def _bound(self, field: str, operator: str, bound: datetime) -> None:
        day, known, is_lower = day_of(bound), self.days[field], operator.startswith("$g")
        begin, end = (COMPARISONS[operator](EPOCH + day * DAY + into, bound) for into in (timedelta(), LAST))
        if begin != end and self._parts.get((is_lower, day)) != (START if is_lower else END):
            # No event ends before it starts: of two bounds on the same day only the narrower one matters.
            self._parts[is_lower, day] = field
        if is_lower:
            self.days[field] = range(max(known.start, day if begin else day + 1), known.stop)
        else:
            self.days[field] = range(known.start, min(known.stop, day + 1 if end else day))

    def parts(self) -> list[Condition]:
        """Conditions for the events on days that are only partly in the range."""
        return [
            {field: {"$gte": EPOCH + day * DAY, "$lte": EPOCH + day * DAY + LAST}}
            for (_, day), field in self._parts.items()
        ]


def split(conditions: Iterable[Condition]) -> tuple[list[Condition], Stretch | None]:
    """Split a filter into its other conditions and its date range, None if it has no dates."""
    rest: list[Condition] = []
    dates: list[Condition] = []
    for condition in conditions:
        (dates if condition.keys() <= set(FIELDS) else rest).append(condition)
    return rest, Stretch(dates) if dates else None
