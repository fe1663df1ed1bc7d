"""Requests to an events service, independent of any service's API."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time


@dataclass(frozen=True)
class Listing:
    """A page of twelve events within a range of days, sorted by start; `usual`: the default range."""

    since: date
    until: date
    usual: bool = True
    category: int | None = None
    venue: int | None = None
    word: str | None = None
    place: tuple[float, float, float] | None = None
    """Latitude, longitude, kilometres."""
    page: int = 1

    @property
    def bounds(self) -> tuple[datetime, datetime]:
        return datetime.combine(self.since, time(0, 0)), datetime.combine(self.until, time(23, 59, 59))


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
class RenameVenue:
    """A new name for a venue, which all its events must show."""

    id: int
    name: str


Ask = Listing | Item | BySlug | Create | Update | RenameVenue
