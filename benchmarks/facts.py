"""Facts about the loaded data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from benchmarks.asks import Ask, Listing

PER_PAGE = 12
EARTH_KM = 6371.0088


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
        return self.listed[ask].size if isinstance(ask, Listing) else self.sizes[type(ask)]
