"""Index definitions: each list filter is supported by one."""

from __future__ import annotations

import asyncio
from typing import Any

import pymongo
from pymongo import ASCENDING, DESCENDING, IndexModel
from pymongo.errors import AutoReconnect

from schemas import EVENT, KINDS, VENUE
from schemas.kind import Kind
from schemas.kinds.event_representation import LINKED
from service.mongo.client import Collection, Database

ORDER = ("start_utc", "_id", "end_utc")
FILTERED = (*ORDER, "status", "hide_from_listings")
"""All fields that every list of events filters by: its total is counted from the index alone. The status
comes after the order: callers who see every status but the trash get the list in order, too."""
INDEX_BUILD_SECONDS = 6 * 3600
"""Timeout for index builds, in seconds: with a million events they are slow."""


def index(name: str, *keys: str, **options: Any) -> IndexModel:
    """An index on the keys in ascending order; `-key` is descending, `key:type` sets another index type."""
    parsed: list[tuple[str, Any]] = []
    for key in keys:
        field, _, special = key.removeprefix("-").partition(":")
        parsed.append((field, special or (DESCENDING if key.startswith("-") else ASCENDING)))
    return IndexModel(parsed, name=name, **options)


def indexes_of(kind: Kind) -> list[IndexModel]:
    """Every kind is queried by slug, word and title; the other indexes depend on the filters of its list."""
    shared = [
        index("slug", "slug", unique=True),
        index("imported", "import_key", unique=True, sparse=True),
        index("words", "tok"),
        index("by_title", "sort", "_id"),
    ]
    if kind is EVENT:
        return shared + POSTS + EVENTS
    if not kind.is_post:
        return shared + TERMS
    named = [index("by_name", kind.name_field, "_id"), index("by_author", "author", "status")]
    places = [index("place", "point:2dsphere")] if kind is VENUE else []
    return shared + POSTS + named + places + (USED if kind.embedded_fields else [])


MODIFIED = index("by_modified", "modified_utc", "_id")
POSTS = [
    index("by_date", "status", "-date_utc", "-_id"),
    index("any_by_date", "-date_utc", "-_id", "status"),
    MODIFIED,
]
# A record that has events has a latest end, too.
USED = [
    index("by_end", "status", "events.publish_end"),
    index("any_by_end", "events.live_end", "status"),
]
TERMS = [
    index("by_key", "key", "parent"),
    index("by_count", "events.publish", "_id"),
    index("by_parent", "parent", "_id"),
    MODIFIED,
    index("by_ancestor", "ancestors"),
    index("claim", "claim", unique=True, partialFilterExpression={"claim": {"$type": "string"}}),
]
EVENTS = [
    index("listed", "hide_from_listings", "status", *ORDER),
    index("any_listed", "hide_from_listings", *ORDER, "status"),
    index("by_end", "hide_from_listings", "status", "end_utc", "_id"),
    index("any_by_end", "hide_from_listings", "end_utc", "_id", "start_utc", "status"),
    index("own", "author", "status", *ORDER),
    *(index(f"by_{field}", field, *FILTERED) for field in ("featured", "ticketed", "post_parent")),
    index("protected", "locked", partialFilterExpression={"locked": True}),
    index("located", "venue.geo_lat", "status", *ORDER),
    *(index(f"linked_{field}", f"{field}._id", *FILTERED, "locked") for field in LINKED),
]
INDEXES: dict[str, list[IndexModel]] = {kind.plural: indexes_of(kind) for kind in KINDS} | {
    "tokens": [index("digest", "digest", unique=True)],
    "words": [index("grams", "grams")],
    "changes": [index("by_kind", "kind", "_id"), index("expiry", "expires_at", expireAfterSeconds=0)],
    "idempotency_keys": [index("expiry", "expires_at", expireAfterSeconds=0)],
    "undo": [index("expiry", "expires_at", expireAfterSeconds=0)],
    "removed_terms": [index("expiry", "at", expireAfterSeconds=366 * 86400)],
}


async def create_indexes(database: Database) -> None:
    """Create missing indexes; idempotent, and safe in several processes at once."""
    with pymongo.timeout(INDEX_BUILD_SECONDS):
        await asyncio.gather(*(_create(database[name], models) for name, models in INDEXES.items()))


async def _create(collection: Collection, models: list[IndexModel]) -> None:
    """Unlike reads and writes, index builds are not repeated by the driver when the connection is lost."""
    try:
        await collection.create_indexes(models)
    except AutoReconnect:
        await collection.create_indexes(models)
