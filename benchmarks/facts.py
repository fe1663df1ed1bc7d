"""Facts about the loaded data."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import mean
from typing import Any

from benchmarks.asks import Ask, Listing

PER_PAGE = 12
EARTH_KM = 6371.0088
DISTINCT = 20_000
"""Number of different words in the events."""
SEED = 7
"""Seed of the generated events and of their words."""


@dataclass(frozen=True)
class Answer:
    """A response: its size and, for a list, the event IDs and the total."""

    size: int
    ids: tuple[int, ...] = ()
    total: int | None = None


@dataclass
class Facts:
    """The loaded data, and the responses that Kalends gives."""

    number: int
    first: int
    word: str
    words: list[str]
    category: int
    tag: int
    organizer: int
    venue: int
    popular: int
    categories: list[int]
    venues: list[int]
    tags: list[int]
    token: str
    versions: dict[str, str]
    public: bool = False
    """Whether readers are the public, who see published events only, or see all but the trash."""
    sample: dict[str, Any] = field(default_factory=dict)
    """The public fields of an event, as stored."""
    stored: int = 0
    """Average size in bytes of a stored event."""
    listed: dict[Listing, Answer] = field(default_factory=dict)
    sizes: dict[type[Ask], int] = field(default_factory=dict)

    def size(self, ask: Ask) -> int:
        """Size of the response; for a list that was not seen yet, the average of similar ones."""
        if not isinstance(ask, Listing):
            return self.sizes[type(ask)]
        if ask in self.listed:
            return self.listed[ask].size
        return round(mean(answer.size for one, answer in self.listed.items() if one.shape == ask.shape))

    def size_in_list(self) -> int:
        """The average size of one event in Kalends' lists."""
        return round(mean(one.size / len(one.ids) for one in self.listed.values() if one.ids))
