"""Marks in a long list: values of its order and how many records come before them."""

from __future__ import annotations

import asyncio
from bisect import bisect_right, insort
from typing import Any, NamedTuple

from service.store.asked import Condition
from service.store.matching import Facts

MOST = 500
"""Marks of one order."""


class Mark(NamedTuple):
    """So many records of the list come before the first with this value."""

    rank: int
    value: Any


START = Mark(0, None)


class Marks:
    """The marks of one order of a list, so that a deep page is not reached by counting from the first."""

    def __init__(self, field: str, sign: int) -> None:
        self._field = field
        self._sign = sign
        self._marks: list[Mark] = []
        self.turn = asyncio.Lock()
        """Of whoever sets marks on a long way: who waits for it finds them set."""

    def before(self, rank: int) -> Mark:
        """The last mark at or before a rank."""
        at = bisect_right(self._marks, rank, key=lambda mark: mark.rank)
        return self._marks[at - 1] if at else START

    def condition(self, mark: Mark) -> list[Condition]:
        """What a record meets that does not come before a mark."""
        bound = {"$gte" if self._sign > 0 else "$lte": mark.value}
        return [] if mark is START else [{self._field: bound}]

    def learn(self, first: int, values: list[Any]) -> None:
        """Sets a mark where the value changes within a stretch that begins at a known rank."""
        for at in range(1, len(values)):
            if values[at] != values[at - 1]:
                self._set(Mark(first + at, values[at]))
                return

    def _set(self, mark: Mark) -> None:
        if self.before(mark.rank) == mark:
            return
        insort(self._marks, mark, key=lambda mark: mark.rank)
        if len(self._marks) > MOST:
            self._lose_one()

    def _lose_one(self) -> None:
        """Takes away the mark that is missed least: its neighbours are closer than those of any other."""
        marks = self._marks
        spans = [after.rank - before.rank for before, after in zip(marks, marks[2:], strict=False)]
        del marks[1 + spans.index(min(spans))]

    def shift(self, facts: Facts | None, step: int) -> None:
        """A record, if there is one, came or went: every mark behind it moves."""
        if facts is None:
            return
        if (value := facts.get(self._field)) is None:
            self._marks.clear()
            return
        for at, mark in enumerate(self._marks):
            if mark.value > value if self._sign > 0 else mark.value < value:
                self._marks[at] = Mark(mark.rank + step, mark.value)
