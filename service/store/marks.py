"""Page anchors of a long list: places in its sort order, with the number of records before them."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from typing import Any, NamedTuple

from bson import Timestamp

from service.store.event_changes import Facts, Move
from service.store.lists.predicates import Unknown
from service.store.lists.query import Condition, Sort

Place = tuple[Any, ...]
"""A record's values of the sort fields."""
MOST = 500
"""Maximum number of anchors for one sort order."""


class Mark(NamedTuple):
    """A page anchor: `rank` records of the list come before this place in its sort order."""

    rank: int
    place: Place


START = Mark(0, ())


class Marks:
    """The anchors for one sort order of a list, so that a deep page is found without a large skip."""

    def __init__(self, sort: Sort) -> None:
        self._names = [name for name, _ in sort]
        self._past = "$gt" if sort[0][1] > 0 else "$lt"
        self._marks: list[Mark] = []
        self.turn = asyncio.Lock()
        """Held while anchors are set on the way to a deep page; whoever waits for it finds them set."""

    def before(self, rank: int) -> Mark:
        """The last anchor at or before a rank."""
        at = bisect_right(self._marks, rank, key=lambda mark: mark.rank)
        return self._marks[at - 1] if at else START

    def beyond(self, mark: Mark) -> list[Condition]:
        """Alternative conditions, one of which holds for each record at or after an anchor."""
        any_of: list[Condition] = []
        same: dict[str, Any] = {}
        for name, value in zip(self._names, mark.place, strict=False):
            operator = self._past + ("e" if name == self._names[-1] else "")
            any_of.append({**same, name: {operator: value}})
            same[name] = value
        return any_of

    def learn(self, start: Mark, skipped: int, record: Facts, at: Timestamp, moves: Iterable[Move]) -> None:
        """Set an anchor at a record that was `skipped` records behind the anchor `start` at the time `at`.
        `moves` are those since `start` had its rank: up to `at` they shift `start`, then the record."""
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
        """Remove the least useful anchor: the one whose neighbours are closest to each other."""
        marks = self._marks
        spans = [after.rank - before.rank for before, after in zip(marks, marks[2:], strict=False)]
        del marks[1 + spans.index(min(spans))]

    def shift(self, move: Move) -> None:
        """Update the ranks of all anchors behind an event that entered or left the list."""
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
        """Whether a place sorts after another; the start of the list sorts before all."""
        return one != START.place and (one > other if self._past == "$gt" else one < other)
