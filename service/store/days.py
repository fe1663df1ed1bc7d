"""How many events of a list begin and end on which days, so that any stretch of time is counted without being
read: only days that belong to it in part are."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from service.store.asked import Condition
from service.store.facts import Move
from service.store.matching import COMPARISONS

START, END = FIELDS = ("start_utc", "end_utc")
DAY = timedelta(days=1)
LAST = DAY - timedelta(seconds=1)
"""Into a day; all times are whole seconds."""
EPOCH = datetime(1970, 1, 1)
EVER = range((datetime.min - EPOCH) // DAY, (datetime.max - EPOCH) // DAY + 1)


def day_of(moment: datetime) -> int:
    return (moment - EPOCH) // DAY


def grouped(conditions: list[Condition]) -> list[dict[str, Any]]:
    """The pipeline that counts the events of each pair of days."""
    days = {
        field: {
            "$floor": {"$divide": [{"$subtract": [f"${field}", EPOCH]}, DAY // timedelta(milliseconds=1)]}
        }
        for field in FIELDS
    }
    return [{"$match": {"$and": conditions}}, {"$group": {"_id": days, "n": {"$sum": 1}}}]


class Days:
    """Numbers of events by the days of UTC on which they begin and end."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._ends: defaultdict[int, Counter[int]] = defaultdict(Counter)
        for row in rows:
            self._ends[int(row["_id"][START])][int(row["_id"][END])] = row["n"]

    def shift(self, move: Move) -> None:
        """An event came or went."""
        self._ends[day_of(move.facts[START])][day_of(move.facts[END])] += move.step

    def within(self, starts: range, ends: range) -> int:
        """Events that begin on some days and end on others."""
        found = (on for day, on in self._ends.items() if day in starts)
        return sum(number for on in found for day, number in on.items() if day in ends)


class Stretch:
    """What conditions on start and end demand, in days."""

    def __init__(self, dates: Iterable[Condition]) -> None:
        self.days = dict.fromkeys(FIELDS, EVER)
        """Days all of which meets it."""
        self._parts: dict[tuple[bool, int], str] = {}
        for condition in dates:
            for field, bounds in condition.items():
                for operator, bound in bounds.items():
                    self._bound(field, operator, bound)

    def _bound(self, field: str, operator: str, bound: datetime) -> None:
        day, known, is_lower = day_of(bound), self.days[field], operator.startswith("$g")
        begin, end = (COMPARISONS[operator](EPOCH + day * DAY + into, bound) for into in (timedelta(), LAST))
        if begin != end and self._parts.get((is_lower, day)) != (START if is_lower else END):
            # No event ends before it starts: of two bounds on the same day the narrower one tells.
            self._parts[is_lower, day] = field
        if is_lower:
            self.days[field] = range(max(known.start, day if begin else day + 1), known.stop)
        else:
            self.days[field] = range(known.start, min(known.stop, day + 1 if end else day))

    def parts(self) -> list[Condition]:
        """What an event meets that lies on a day of which only a part meets it."""
        return [
            {field: {"$gte": EPOCH + day * DAY, "$lte": EPOCH + day * DAY + LAST}}
            for (_, day), field in self._parts.items()
        ]


def split(conditions: Iterable[Condition]) -> tuple[list[Condition], Stretch | None]:
    """A list without its dates, and these; None where it has none."""
    rest: list[Condition] = []
    dates: list[Condition] = []
    for condition in conditions:
        (dates if condition.keys() <= set(FIELDS) else rest).append(condition)
    return rest, Stretch(dates) if dates else None
