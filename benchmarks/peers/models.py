"""The public content of an event, as Pydantic models."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field


class Copy(BaseModel):
    """The copy of a linked record in an event."""

    model_config = ConfigDict(populate_by_name=True, extra="allow")
    id: int = Field(alias="_id")
    version: int
    slug: str
    description: str | None = None


class CostDetails(BaseModel):
    """The currency and the values parsed from a cost."""

    currency_symbol: str
    currency_code: str
    currency_position: str
    values: list[str]


class Cost(BaseModel):
    """The cost of an event."""

    text: str
    details: CostDetails


class EventBody(BaseModel):
    """All public fields of an event except its ID."""

    title: str
    description: str | None = None
    excerpt: str | None = None
    slug: str
    status: str
    author: int
    timezone: str
    all_day: bool
    start: datetime
    end: datetime
    start_utc: datetime
    end_utc: datetime
    date_utc: datetime
    modified_utc: datetime
    cost: Cost
    website: str | None = None
    show_map: bool
    show_map_link: bool
    hide_from_listings: bool
    sticky: bool
    featured: bool
    ticketed: bool
    post_parent: int
    version: int
    venue: list[Copy]
    organizer: list[Copy]
    categories: list[Copy]
    tags: list[Copy]
