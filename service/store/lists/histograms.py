"""Histograms of events by start and end, from which the totals of ranges of whole days are computed."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

from schemas.values.dates import EPOCH, LAST
from schemas.values.zones import Zone
from service.store.lists.query import Condition

START, END = "start_utc", "end_utc"
LOWER = ("$gt", "$gte")
DAY = 86_400
SECOND = timedelta(seconds=1)
SHIFT = 26
"""A key is `start slot << SHIFT | (end slot - start slot)`; it fits into the 53 bits of a double."""
SPAN = (1 << SHIFT) - 1
NEVER, FOREVER = -(1 << 25), 1 << 25
"""Slots before and after all times that can be stored."""


class Slots:
    """Divides time into numbered slots. One begins at every UTC time of day at which a local day of the zone
    has ever begun (in Berlin 22:00 and 23:00), so that whole local days are whole ranges of slots. MongoDB
    and Python compute a slot's number in the same way."""

    def __init__(self, zone: Zone) -> None:
        self.edges = day_beginnings(zone)

    def of(self, moment: datetime) -> int:
        """The number of the slot that a moment is in."""
        seconds = (moment - EPOCH) // SECOND
        return sum((seconds - edge) // DAY for edge in self.edges)

    def begin(self, slot: int) -> datetime:
        """The first second of a slot."""
        day, number = divmod(slot + len(self.edges) - 1, len(self.edges))
        try:
            return EPOCH + timedelta(days=day, seconds=self.edges[number])
        except OverflowError:  # it is partly before the year 1, or after the year 9999
            return datetime.min if slot < 0 else datetime.max

    def is_edge(self, moment: datetime) -> bool:
        """Whether a slot begins at this moment."""
        return (moment - EPOCH).seconds in self.edges and not moment.microsecond

    def key_expression(self) -> Condition:
        """An expression for the key of an event, for MongoDB."""
        start, end = self._expression(START), self._expression(END)
        return {"$add": [{"$multiply": [start, SPAN]}, end]}

    def _expression(self, field: str) -> Condition:
        milliseconds = ({"$subtract": [f"${field}", EPOCH + edge * SECOND]} for edge in self.edges)
        return {"$add": [{"$floor": {"$divide": [one, DAY * 1000]}} for one in milliseconds]}


@lru_cache(100)
def day_beginnings(zone: Zone) -> tuple[int, ...]:
    """The seconds of the UTC day at which days of the zone begin, from 1970 to 2100. Offsets in use for less
    than a week may be missing: a range that begins or ends on such a day is counted by MongoDB."""
    weeks = (zone.to_wall(moment) - moment for moment in (EPOCH + timedelta(weeks=n) for n in range(6800)))
    return tuple(sorted({int(-ahead.total_seconds()) % DAY for ahead in weeks}))


class Window(NamedTuple):
    """Ranges of slots in which events start and end; the upper bounds are exclusive."""

    start: int
    start_before: int
    end: int
    end_before: int
    remainder: tuple[Condition, ...] = ()
    """One of these holds for each event of a list that is not in these ranges: it starts or ends in a slot
    that a bound of the list cuts."""


def window_of(dates: Iterable[Condition], slots: Slots) -> Window:
    """The whole slots within the bounds of a list."""
    low, high = {START: NEVER, END: NEVER}, {START: FOREVER, END: FOREVER}
    remainder: list[Condition] = []
    for condition in dates:
        for field, bounds in condition.items():
            for operator, bound in bounds.items():
                # All times are whole seconds: up to 23:59:59 is the same as before 00:00:00.
                edge = bound + SECOND if operator in ("$gt", "$lte") and bound < LAST else bound
                is_edge, is_low = slots.is_edge(edge), operator in LOWER
                slot = slots.of(edge if is_edge else bound)
                if is_low:
                    low[field] = max(low[field], slot if is_edge else slot + 1)
                else:
                    high[field] = min(high[field], slot)
                if not is_edge:
                    rest = {"$lt": slots.begin(slot + 1)} if is_low else {"$gte": slots.begin(slot)}
                    remainder.append({field: {operator: bound} | rest})
    return Window(low[START], high[START], low[END], high[END], tuple(remainder))


def lower_bound(dates: Iterable[Condition], field: str) -> datetime:
    """The latest of the lower bounds on a field; without any, the earliest time there is."""
    bounds = (bound for condition in dates for bound in condition.get(field, {}).items())
    return max((bound for operator, bound in bounds if operator in LOWER), default=datetime.min)


class Histogram:
    """Numbers of events by start slot and end slot, in two arrays sorted by key: 16 bytes for each pair of
    slots."""

    def __init__(self, slots: Slots, keys: Iterable[float], counts: Iterable[int]) -> None:
        self.slots = slots
        self._keys, self._counts = array("q", map(int, keys)), array("q", counts)
        self._longest = max((key & SPAN for key in self._keys), default=0)

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, event: Mapping[str, Any], step: int) -> None:
        """Count an event that was added (1) or removed (-1)."""
        start = self.slots.of(event[START])
        span = self.slots.of(event[END]) - start
        at = bisect_left(self._keys, key := start << SHIFT | span)
        if at == len(self._keys) or self._keys[at] != key:
            self._keys.insert(at, key)
            self._counts.insert(at, 0)
            self._longest = max(self._longest, span)
        self._counts[at] += step

    def total(self, window: Window) -> int:
        """The number of events in a window."""
        return sum(self._numbers(window, *self._range(window)))

    def locate(self, window: Window, field: str, rank: int, *, is_descending: bool) -> tuple[int, int]:
        """The slot of the event with this rank if events are sorted by a field, and the number of events in
        the slots before it."""
        low, high = self._range(window)
        numbers = Counter[int]()
        for key, number in zip(self._keys[low:high], self._numbers(window, low, high), strict=True):
            numbers[(key >> SHIFT) + (key & SPAN if field == END else 0)] += number
        slots = sorted(numbers, reverse=is_descending)
        before = list(accumulate((numbers[slot] for slot in slots), initial=0))
        at = bisect_right(before, rank) - 1
        return slots[at], before[at]

    def earliest_start(self, end: datetime) -> datetime:
        """The time before which no event starts that ends at a time or later: none is longer than the
        longest one."""
        return self.slots.begin(self.slots.of(end) - self._longest)

    def _index(self, slot: int) -> int:
        return bisect_left(self._keys, slot << SHIFT)

    def _range(self, window: Window) -> tuple[int, int]:
        """The range of entries that may be in a window."""
        low = self._index(max(window.start, window.end - self._longest))
        return low, max(low, self._index(min(window.start_before, window.end_before)))

    def _numbers(self, window: Window, low: int, high: int) -> list[int]:
        """The numbers of events in a window, for each entry in a range. No event ends before it starts: only
        the entries that start near the bounds of the end have to be looked at one by one."""
        sure_low = min(high, max(low, self._index(window.end)))
        sure_high = max(sure_low, min(high, self._index(window.end_before - self._longest)))
        return [
            *self._looked_at(window, low, sure_low),
            *self._counts[sure_low:sure_high],
            *self._looked_at(window, sure_high, high),
        ]

    def _looked_at(self, window: Window, low: int, high: int) -> Iterator[int]:
        for key, count in zip(self._keys[low:high], self._counts[low:high], strict=True):
            yield count if window.end <= (key >> SHIFT) + (key & SPAN) < window.end_before else 0
