"""Requests to an events service, independent of any service's API."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time


@dataclass(frozen=True)
class Listing:
    """A page of twelve events within a range of days, sorted by start."""

    since: date
    until: date
    first: bool = False
    """Whether the request names the first day; otherwise it is the default of Kalends, today."""
    last: bool = False
    """Whether the request names the last day; otherwise it is the default of Kalends, in two years."""
    category: int | None = None
    venue: int | None = None
    tag: int | None = None
    word: str | None = None
    """Text to search for: a word or a part of one."""
    place: tuple[float, float, float] | None = None
    """Latitude, longitude, kilometres."""
    page: int = 1

    @property
    def bounds(self) -> tuple[datetime, datetime]:
        return datetime.combine(self.since, time(0, 0)), datetime.combine(self.until, time(23, 59, 59))

    @property
    def shape(self) -> str:
        """Lists of one shape have responses of about the same size."""
        return "search" if self.word else "place" if self.place else "list"


@dataclass(frozen=True)
class Item:
    """One event by ID."""

    id: int


@dataclass(frozen=True)
class BySlug:
    """One event by slug."""

    id: int
    slug: str


@dataclass(frozen=True)
class Create:
    """A new event, linked to existing records."""

    title: str
    description: str
    start: datetime
    end: datetime


@dataclass(frozen=True)
class Update:
    """A new title for an event."""

    id: int
    title: str


@dataclass(frozen=True)
class Move:
    """A new title and new dates for an event."""

    id: int
    title: str
    start: datetime
    end: datetime


@dataclass(frozen=True)
class RenameVenue:
    """A new name for a venue, which all its events must show."""

    id: int
    name: str


Ask = Listing | Item | BySlug | Create | Update | Move | RenameVenue
