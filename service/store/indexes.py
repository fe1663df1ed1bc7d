"""Indexes, by name: each list filter has one that answers it."""

from __future__ import annotations

import asyncio
from typing import Any

from pymongo import ASCENDING, DESCENDING, IndexModel

from schemas.event_view import LINKED
from service.store.client import Database

ORDER = ("start_utc", "_id", "end_utc")


def index(name: str, *keys: str, **options: Any) -> IndexModel:
    """An index on the keys in ascending order; `-key` descends and `key:type` names another type."""
    parsed: list[tuple[str, Any]] = []
    for key in keys:
        field, _, special = key.removeprefix("-").partition(":")
        parsed.append((field, special or (DESCENDING if key.startswith("-") else ASCENDING)))
    return IndexModel(parsed, name=name, **options)


SHARED = [index("slug", "slug", unique=True), index("words", "tok"), index("by_title", "sort", "_id")]
POSTS = [
    index("by_date", "status", "-date_utc", "-_id"),
    index("any_by_date", "-date_utc", "-_id", "status"),
    index("by_author", "author", "status"),
    index("by_modified", "modified_utc", "_id"),
]
USED = [
    index("by_use", "status", "events.publish"),
    index("by_end", "status", "events.publish_end"),
]
TERMS = [
    index("by_key", "key", "parent"),
    index("by_count", "events.publish", "_id"),
    index("claim", "claim", unique=True, partialFilterExpression={"claim": {"$type": "string"}}),
]
INDEXES: dict[str, list[IndexModel]] = {
    "events": [
        *SHARED,
        *POSTS,
        index("listed", "hide_from_listings", "status", *ORDER),
        index("any_listed", "hide_from_listings", *ORDER, "status"),
        index("ending", "hide_from_listings", "status", "end_utc", "_id"),
        index("own", "author", "status", *ORDER),
        index("featured", "featured", "status", *ORDER),
        index("ticketed", "ticketed", "status", *ORDER),
        index("part_of", "post_parent", "status", *ORDER),
        index("located", "venue.geo_lat", "status", *ORDER),
        index("place", "venue.point:2dsphere", "status", "start_utc"),
        *(
            listed
            for field in LINKED
            for listed in (
                index(field, f"{field}._id", "status", *ORDER),
                index(f"{field}_last", f"{field}._id", "status", "-end_utc"),
            )
        ),
        index("owing", "owes.refs", sparse=True),
    ],
    "venues": [*SHARED, *POSTS, *USED, index("named", "venue", "_id")],
    "organizers": [*SHARED, *POSTS, *USED, index("named", "organizer", "_id")],
    "categories": [*SHARED, *TERMS, index("ancestors", "ancestors"), index("by_parent", "parent", "_id")],
    "tags": [*SHARED, *TERMS],
    "tokens": [index("digest", "digest", unique=True)],
    "words": [index("grams", "grams")],
}


async def create_indexes(database: Database) -> None:
    """Creates what is missing; running it again, or in several processes at once, changes nothing."""
    await asyncio.gather(*(database[name].create_indexes(models) for name, models in INDEXES.items()))
