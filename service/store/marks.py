"""Marks in a long list: places in its order and how many records come before them."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from typing import Any, NamedTuple

from bson import Timestamp

from service.store.asked import Condition, Sort
from service.store.facts import Facts, Move
from service.store.matching import Unknown

Place = tuple[Any, ...]
"""Of a record: the values of the fields that the list is ordered by."""
MOST = 500
"""Marks of one order."""


class Mark(NamedTuple):
    """So many records of the list come before this place in its order."""

    rank: int
    place: Place


START = Mark(0, ())


class Marks:
    """The marks of one order of a list, so that a deep page is not reached by counting from the first."""

    def __init__(self, sort: Sort) -> None:
        self._names = [name for name, _ in sort]
        self._past = "$gt" if sort[0][1] > 0 else "$lt"
        self._marks: list[Mark] = []
        self.turn = asyncio.Lock()
        """Of whoever sets marks on a long way: who waits for it finds them set."""

    def before(self, rank: int) -> Mark:
        """The last mark at or before a rank."""
        at = bisect_right(self._marks, rank, key=lambda mark: mark.rank)
        return self._marks[at - 1] if at else START

    def beyond(self, mark: Mark) -> list[Condition]:
        """What a record meets that does not come before a mark: one of these."""
        ways: list[Condition] = []
        same: dict[str, Any] = {}
        for name, value in zip(self._names, mark.place, strict=False):
            operator = self._past + ("e" if name == self._names[-1] else "")
            ways.append({**same, name: {operator: value}})
            same[name] = value
        return ways

    def learn(self, start: Mark, skipped: int, record: Facts, at: Timestamp, moves: Iterable[Move]) -> None:
        """Sets a mark at a record that was so many records behind another mark at some moment. All moves
        since that one had its rank are told: before that moment they moved it, after it the record."""
        place, rank = self._place(record), start.rank + skipped
        for move in moves:
            if self._is_behind(start.place if move.at <= at else place, self._place(move.facts)):
                rank += move.step
        self.set(Mark(rank, place))

    def set(self, mark: Mark) -> None:
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

    def shift(self, move: Move) -> None:
        """An event came or went: every mark behind it moves."""
        try:
            place = self._place(move.facts)
        except Unknown:
            self._marks.clear()
            return
        first = bisect_left(self._marks, True, key=lambda mark: self._is_behind(mark.place, place))
        self._marks[first:] = [Mark(mark.rank + move.step, mark.place) for mark in self._marks[first:]]

    def _place(self, facts: Facts) -> Place:
        place = tuple(facts.get(name) for name in self._names)
        if None in place:
            raise Unknown
        return place

    def _is_behind(self, one: Place, other: Place) -> bool:
        """Whether a place comes after another; the start of the list comes after none."""
        return one != START.place and (one > other if self._past == "$gt" else one < other)
