"""Running total of a list, kept current by the change feed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from bson import Timestamp

from service.store.change_feed import ChangeFeed
from service.store.days import FIELDS, Days
from service.store.event_changes import Change, Move
from service.store.lists.predicates import Unknown, fields_of, matches
from service.store.lists.query import Condition, Sort
from service.store.marks import Marks

GONE = -1
"""Value of `seen` for a total that must be counted again."""


@dataclass
class Tally:
    """The total of one list as of the last change applied to it."""

    conditions: list[Condition]
    at: Timestamp
    total: int
    seen: int
    """Number of the first change that is not applied yet."""
    days: Days | None = None
    marks: dict[tuple[str, int], Marks] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._fields = fields_of(self.conditions)

    def marks_of(self, sort: Sort) -> Marks:
        return self.marks.setdefault(sort[0], Marks(sort))

    def hears(self, feed: ChangeFeed) -> bool:
        """Apply new changes; return False if the list must be counted again."""
        if self.seen >= feed.oldest:
            changes, self.seen = feed.since(self.seen), feed.number
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

    def moves(self, feed: ChangeFeed, number: int) -> list[Move]:
        """The events that entered or left the list since a change; raises Unknown if that is not known."""
        if number < feed.oldest:
            raise Unknown
        return [move for change in feed.since(number) for move in self._moves(change)]

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
        """Fields that determine the position of a record in the list."""
        return {name for name, _ in self.marks}.union(FIELDS if self.days else ())

    def _followers(self) -> Iterator[Marks | Days]:
        yield from self.marks.values()
        if self.days:
            yield self.days


def keep(tallies: OrderedDict[bytes, Tally], key: bytes, tally: Tally, most: int) -> None:
    """Add a running total to an LRU cache of at most `most` entries."""
    tallies[key] = tally
    tallies.move_to_end(key)
    if len(tallies) > most:
        tallies.popitem(last=False)
