"""The length of a list, carried along with every write."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from bson import Timestamp

from service.store.asked import Condition, Sort
from service.store.days import FIELDS, Days
from service.store.facts import Change, Move
from service.store.marks import Marks
from service.store.matching import Unknown, fields_of, matches
from service.store.news import News

GONE = -1


@dataclass
class Tally:
    """The length of one list at the time of the last change that it has heard of."""

    conditions: list[Condition]
    at: Timestamp
    total: int
    seen: int
    """Number of the first change that it has not heard of."""
    days: Days | None = None
    marks: dict[tuple[str, int], Marks] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._fields = fields_of(self.conditions)

    def marks_of(self, sort: Sort) -> Marks:
        return self.marks.setdefault(sort[0], Marks(sort))

    def hears(self, news: News) -> bool:
        """Takes in what is new. False: it cannot be told without counting again."""
        if self.seen >= news.oldest:
            changes, self.seen = news.since(self.seen), news.number
            if all(self._takes(change) for change in changes if change.at > self.at):
                return True
        self.seen = GONE
        return False

    def _takes(self, change: Change) -> bool:
        try:
            moves = self._moves(change)
        except Unknown:
            self.marks.clear()
            self.days = None
            return change.touched is not None and not change.touched & self._fields
        for move in moves:
            self.total += move.step
            for one in self._followers():
                one.shift(move)
        return True

    def moves(self, news: News, number: int) -> list[Move]:
        """What has come to the list and left it since a change, if that can be told."""
        if number < news.oldest:
            raise Unknown
        return [move for change in news.since(number) for move in self._moves(change)]

    def _moves(self, change: Change) -> list[Move]:
        if change.touched is not None and not change.touched & (self._fields | self._orders()):
            return []
        if not change.is_known:
            raise Unknown
        sides = (change.old, -1), (change.new, 1)
        return [
            Move(change.at, facts, step) for facts, step in sides if facts and matches(self.conditions, facts)
        ]

    def _orders(self) -> set[str]:
        """Fields that decide where in the list a record is."""
        return {name for name, _ in self.marks}.union(FIELDS if self.days else ())

    def _followers(self) -> Iterator[Marks | Days]:
        yield from self.marks.values()
        if self.days:
            yield self.days


def keep(tallies: OrderedDict[bytes, Tally], key: bytes, tally: Tally, most: int) -> None:
    """Keeps so many at most; the least recently asked for go first."""
    tallies[key] = tally
    tallies.move_to_end(key)
    if len(tallies) > most:
        tallies.popitem(last=False)
