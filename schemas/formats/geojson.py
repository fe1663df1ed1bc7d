"""GeoJSON (RFC 7946): events and venues on a map."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from schemas.formats.format import Feed, Format, venues_of
from schemas.kind import Document


def geometry(venues: list[Document]) -> Document | None:
    """The places of these venues; None if none has coordinates. Longitude comes first."""
    points = [[one["geo_lng"], one["geo_lat"]] for one in venues if one["geo_lat"] is not None]
    if len(points) > 1:
        return {"type": "MultiPoint", "coordinates": points}
    return {"type": "Point", "coordinates": points[0]} if points else None


def item(feed: Feed, record: Mapping[str, Any]) -> bytes:
    """A feature whose properties are the fields of the JSON representation."""
    shown = feed.shown(record)
    venues = venues_of(shown) if "venue" in feed.kind.links else [shown]
    return orjson.dumps(
        {"type": "Feature", "id": shown["id"], "geometry": geometry(venues), "properties": shown}
    )


def begin(feed: Feed) -> bytes:
    return b'{"type":"FeatureCollection","features":['


GEOJSON = Format(
    "geojson", "application/geo+json", ("event", "venue"), begin, item, end=b"]}", separator=b","
)
