"""What is known of the loaded data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from benchmarks.asks import Ask, Listing

PER_PAGE = 12
EARTH_KM = 6371.0088


@dataclass(frozen=True)
class Answer:
    """What Kalends answers: how many bytes, and of a list which events and how many in all."""

    size: int
    ids: tuple[int, ...] = ()
    total: int | None = None


@dataclass
class Facts:
    """The data, and what Kalends answers to whom asks for it."""

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
    """Whether readers are the public, who see what is published, or may see all but the trash."""
    sample: dict[str, Any] = field(default_factory=dict)
    """An event's public content, as it is stored."""
    stored: int = 0
    """Bytes of an event, as it is stored."""
    listed: dict[Listing, Answer] = field(default_factory=dict)
    sizes: dict[type[Ask], int] = field(default_factory=dict)

    def size(self, ask: Ask) -> int:
        return self.listed[ask].size if isinstance(ask, Listing) else self.sizes[type(ask)]
