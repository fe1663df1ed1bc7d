"""The MongoDB conditions of a list: the same for every peer and for the limit."""

from __future__ import annotations

from typing import Any

ORDER = [("start_utc", 1), ("_id", 1)]


def conditions(
    since: Any,
    until: Any,
    status: str | None = None,
    category: int | None = None,
    venue: int | None = None,
    tag: int | None = None,
    word: str | None = None,
    venues: list[int] | None = None,
) -> dict[str, Any]:
    """`venues` are those around a place."""
    within = {"$gte": since, "$lte": until}
    found: dict[str, Any] = {"hide_from_listings": False, "status": status or {"$ne": "trash"}}
    found |= {"start_utc": within, "end_utc": within}
    linked = {"categories._id": category, "venue._id": venue, "tags._id": tag}
    found |= {name: id for name, id in linked.items() if id is not None}
    if word is not None:
        found["text"] = {"$regex": word}
    if venues is not None:
        found["venue._id"] = {"$in": venues}
    return found


def near(lat: float, lng: float, angle: float) -> dict[str, Any]:
    """The condition of venues around a place; `angle` is the radius, seen from the centre of the earth."""
    return {"status": "publish", "point": {"$geoWithin": {"$centerSphere": [[lng, lat], angle]}}}
