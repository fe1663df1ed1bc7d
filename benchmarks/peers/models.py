"""The public content of an event, as Pydantic models."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field


class Copy(BaseModel):
    """What an event shows of a record that it links to."""

    model_config = ConfigDict(populate_by_name=True, extra="allow")
    id: int = Field(alias="_id")
    version: int
    slug: str
    description: str | None = None


class CostDetails(BaseModel):
    """What was read out of a cost."""

    currency_symbol: str
    currency_code: str
    currency_position: str
    values: list[str]


class Cost(BaseModel):
    """What an event costs."""

    text: str
    details: CostDetails


class EventBody(BaseModel):
    """All that is public of an event, but its number."""

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
