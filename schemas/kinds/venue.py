"""Venues: places where events happen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import fields, validates_schema

from schemas.fields import Flag, Number, need_both
from schemas.kind import Document, Kind, RenderContext
from schemas.kinds.post import (
    LinkedListInput,
    PostInput,
    PostResponse,
    describe,
    envelope,
    flag,
    normalize_post,
    shown_texts,
)
from schemas.language import Text
from schemas.site import Site
from schemas.text_fields import Name, Numeral, PlainText, WebAddress

BOOLEAN_OR_STRING: dict[str, Any] = {"type": "string", "one_of": (fields.Boolean(), fields.String())}
"""Metadata of a flag that the interface documents as a string."""


class VenueInput(PostInput):
    """Request body of a venue."""

    venue = Name(required=True, metadata=describe(Text("venue name"), label=Text("Name")))
    show_map = Flag(
        metadata=describe(
            Text("whether events linked to the venue show a map"),
            label=Text("Events here show a map"),
            form="more",
            **BOOLEAN_OR_STRING,
        )
    )
    show_map_link = Flag(
        metadata=describe(
            Text("whether events linked to the venue show a map link"),
            label=Text("Events here show a link to a map"),
            form="more",
            **BOOLEAN_OR_STRING,
        )
    )
    address = PlainText(500, metadata=describe(Text("address")))
    city = PlainText(500, metadata=describe(Text("city")))
    country = PlainText(500, metadata=describe(Text("country")))
    province = PlainText(500, metadata=describe(Text("province"), form="more"))
    state = PlainText(500, metadata=describe(Text("state"), form="more"))
    stateprovince = PlainText(500, metadata=describe(Text("state and province"), form="more"))
    zip = Numeral(500, metadata=describe(Text("ZIP or postal code")))
    phone = PlainText(500, metadata=describe(Text("phone number")))
    website = WebAddress(metadata=describe(Text("website URL"), label=Text("Website")))
    geo_lat = Number(-90, 90, metadata=describe(Text("latitude in degrees"), together=("geo_lng",)))
    geo_lng = Number(-180, 180, metadata=describe(Text("longitude in degrees"), together=("geo_lat",)))

    @validates_schema(skip_on_field_errors=False)
    def both_coordinates(self, data: Document, **_: Any) -> None:
        need_both(data, "geo_lat", "geo_lng")


class VenueResponse(PostResponse):
    """Representation of a venue."""

    venue = fields.String()
    address = fields.String()
    city = fields.String()
    country = fields.String()
    province = fields.String()
    state = fields.String()
    stateprovince = fields.String()
    zip = fields.String()
    phone = fields.String()
    website = fields.String()
    geo_lat = fields.Float(allow_none=True)
    geo_lng = fields.Float(allow_none=True)
    show_map = fields.Boolean()
    show_map_link = fields.Boolean()


PLACE = ("address", "city", "country", "province", "state", "stateprovince", "zip", "phone", "website")
FLAGS = ("show_map", "show_map_link")


def normalize(changes: Document, stored: Document | None, site: Site) -> Document:
    normalized = normalize_post(changes, stored, site)
    normalized |= {name: flag(name, normalized) for name in FLAGS if name in normalized or stored is None}
    if stored and not stored.get("stateprovince") and normalized.get("stateprovince") == region(stored):
        del normalized["stateprovince"]  # sent back as shown: still derived from the state or province
    if "geo_lat" in changes or "geo_lng" in changes:
        latitude, longitude = changes.get("geo_lat"), changes.get("geo_lng")
        point = {"type": "Point", "coordinates": [longitude, latitude]}
        normalized |= {
            "geo_lat": latitude,
            "geo_lng": longitude,
            "point": None if latitude is None else point,
        }
    return normalized


def represent(kind: Kind, record: Mapping[str, Any], context: RenderContext) -> Document:
    shown = envelope(kind, record, context) | shown_texts(record, "venue", "description", "slug", *PLACE)
    shown |= {
        "stateprovince": region(record),
        "geo_lat": record.get("geo_lat"),
        "geo_lng": record.get("geo_lng"),
    }
    return shown | {name: flag(name, record) for name in FLAGS}


def region(record: Mapping[str, Any]) -> str:
    return record.get("stateprovince") or record.get("state") or record.get("province") or ""


def json_ld(kind: Kind, record: Mapping[str, Any], context: RenderContext) -> Document:
    """The venue as a schema.org Place."""
    address = {
        "streetAddress": record.get("address"),
        "addressLocality": record.get("city"),
        "addressRegion": region(record),
        "postalCode": record.get("zip"),
        "addressCountry": record.get("country"),
    }
    found = {name: value for name, value in address.items() if value}
    place: Document = {"@context": "https://schema.org", "@type": "Place", "name": record["venue"]}
    place["url"] = record.get("website") or kind.page_url(context.site, record["slug"])
    place["description"], place["telephone"] = record.get("description"), record.get("phone")
    place["address"] = {"@type": "PostalAddress", **found} if found else None
    if record.get("geo_lat") is not None:
        place["geo"] = {
            "@type": "GeoCoordinates",
            "latitude": record["geo_lat"],
            "longitude": record["geo_lng"],
        }
    return {name: value for name, value in place.items() if value}


VENUE = Kind(
    name="venue",
    plural="venues",
    name_field="venue",
    id_space="post",
    body_schema=VenueInput,
    query_schema=LinkedListInput,
    response_schema=VenueResponse,
    normalize=normalize,
    represent=represent,
    json_ld=json_ld,
    facts=(("address", "zip", "city", "stateprovince", "country"), ("phone",), ("website",)),
    page="venue",
    search_fields=("venue", "description", *PLACE),
    embedded_fields=("venue", "description", "image", *PLACE, "geo_lat", "geo_lng", *FLAGS),
    example={"venue": "Grand Hall", "address": "1 Main Street", "city": "Springfield", "zip": "62701"},
    example_change={"phone": "+1 555 0100", "website": "https://hall.example.org"},
    summaries={
        "list": Text("List venues"),
        "create": Text("Create a venue"),
        "read": Text("Read a venue"),
        "update": Text("Update a venue"),
        "delete": Text("Delete a venue"),
        "readBySlug": Text("Read a venue by slug"),
        "updateBySlug": Text("Update a venue by slug"),
        "deleteBySlug": Text("Delete a venue by slug"),
        "feed": Text("List venues in another format"),
        "export": Text("Read a venue in another format"),
        "exportBySlug": Text("Read a venue by slug in another format"),
    },
    label=Text("Venues"),
    form=(
        *("venue", "address", "zip", "city", "country", "phone", "website", "geo_lat", "geo_lng"),
        *("description", "image", "status"),
    ),
)
