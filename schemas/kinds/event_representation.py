"""Representations of an event: in full, without its protected fields, and as JSON-LD."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import Any

from marshmallow import fields

from schemas.caller import Caller
from schemas.kind import Document, Kind, RenderContext, ResponseSchema
from schemas.kinds.category import CATEGORY
from schemas.kinds.organizer import ORGANIZER
from schemas.kinds.post import PostResponse, describe, envelope, shown_texts, shown_time
from schemas.kinds.tag import TAG
from schemas.kinds.venue import VENUE
from schemas.language import Text
from schemas.site import Site
from schemas.values.costs import read_cost
from schemas.values.dates import details, show
from schemas.values.text_normalization import sort_key
from schemas.values.zones import parse_zone

LINKED = {"categories": CATEGORY, "tags": TAG, "venue": VENUE, "organizer": ORGANIZER}
LINK_FIELD = {kind.name: field for field, kind in LINKED.items()}
"""Name of a kind -> the event field that links to it."""
COPIED_OF_POSTS = ("author", "status", "date_utc", "modified_utc")
"""Fields embedded for every kind of post."""
FLAGS = ("show_map", "show_map_link", "hide_from_listings", "sticky", "featured", "ticketed")
PROTECTED_FIELDS = ("description", "excerpt", "cost", "website", "image", *LINKED)
"""Fields that a protected event does not show without its password."""


class DetailsResponse(ResponseSchema):
    """The parts of a time, with leading zeros."""

    year = fields.String(metadata={"pattern": r"^\d{4}$"})
    month = fields.String(metadata={"pattern": r"^\d{2}$"})
    day = fields.String(metadata={"pattern": r"^\d{2}$"})
    hour = fields.String(metadata={"pattern": r"^\d{2}$"})
    minutes = fields.String(metadata={"pattern": r"^\d{2}$"})
    seconds = fields.String(metadata={"pattern": r"^\d{2}$"})


class CostResponse(ResponseSchema):
    """The currency and the values parsed from a cost."""

    currency_symbol = fields.String()
    currency_code = fields.String()
    currency_position = fields.String(metadata={"enum": ["prefix", "suffix", ""]})
    values = fields.List(fields.String(metadata={"pattern": r"^\d+(\.\d+)?$"}))


class EventResponse(PostResponse):
    """Representation of an event."""

    title = fields.String()
    excerpt = fields.String()
    all_day = fields.Boolean()
    start_date = shown_time()
    start_date_details = fields.Nested(DetailsResponse)
    end_date = shown_time()
    end_date_details = fields.Nested(DetailsResponse)
    utc_start_date = shown_time()
    utc_start_date_details = fields.Nested(DetailsResponse)
    utc_end_date = shown_time()
    utc_end_date_details = fields.Nested(DetailsResponse)
    timezone = fields.String()
    timezone_abbr = fields.String()
    cost = fields.String()
    cost_details = fields.Nested(CostResponse)
    website = fields.String()
    show_map = fields.Boolean()
    show_map_link = fields.Boolean()
    hide_from_listings = fields.Boolean()
    sticky = fields.Boolean()
    featured = fields.Boolean()
    ticketed = fields.Boolean()
    post_parent = fields.Integer()
    categories = fields.List(fields.Nested(CATEGORY.response_schema))
    tags = fields.List(fields.Nested(TAG.response_schema))
    venue = fields.Raw(
        metadata=describe(
            Text("the venue; an array if there is none or more than one"),
            one_of=(fields.Nested(VENUE.response_schema), fields.List(fields.Nested(VENUE.response_schema))),
        )
    )
    organizer = fields.List(fields.Nested(ORGANIZER.response_schema))


def is_locked(record: Mapping[str, Any]) -> bool:
    return bool(record.get("password"))


def without_protected_fields(record: Mapping[str, Any], site: Site) -> Document:
    """A protected event as lists show it, without the fields that its password protects."""
    empty = read_cost("", site.currency)
    hidden: Document = dict.fromkeys(PROTECTED_FIELDS) | {name: [] for name in LINKED}
    return {**record, **hidden, "cost": {"text": empty.text, "details": empty.details}}


def represent(kind: Kind, record: Mapping[str, Any], context: RenderContext) -> Document:
    zone = parse_zone(record["timezone"])
    start, end = show(record["start"]), show(record["end"])
    utc_start, utc_end = show(record["start_utc"]), show(record["end_utc"])
    return {
        **envelope(kind, record, context),
        **shown_texts(record, "title", "description", "excerpt", "slug", "website"),
        "all_day": record["all_day"],
        "start_date": start,
        "start_date_details": details(start),
        "end_date": end,
        "end_date_details": details(end),
        "utc_start_date": utc_start,
        "utc_start_date_details": details(utc_start),
        "utc_end_date": utc_end,
        "utc_end_date_details": details(utc_end),
        "timezone": zone.name,
        "timezone_abbr": zone.abbreviation(record["start_utc"]),
        "cost": record["cost"]["text"],
        "cost_details": record["cost"]["details"],
        **{name: record[name] for name in FLAGS},
        "post_parent": record["post_parent"],
        **{name: _linked(name, record, context) for name in LINKED},
    }


def visible_copies(name: str, record: Mapping[str, Any], caller: Caller) -> list[Document]:
    """The embedded copies of linked records that the caller may see."""
    sees = caller.sees
    return [copy for copy in record.get(name, ()) if copy.get("status") != "trash" and sees(copy)]


def _linked(name: str, record: Mapping[str, Any], context: RenderContext) -> Any:
    kind, visible = LINKED[name], visible_copies(name, record, context.caller)
    if len(visible) > 1 and not kind.is_post:
        visible.sort(key=lambda copy: (sort_key(copy["name"]), copy["_id"]))
    shown = [kind.represent(kind, copy, context) for copy in visible]
    return shown[0] if name == "venue" and len(shown) == 1 else shown


def json_ld(kind: Kind, record: Mapping[str, Any], context: RenderContext) -> Document:
    """The event as a schema.org Event."""
    body: Document = {"@context": "https://schema.org", "@type": "Event", "name": record["title"]}
    body["description"] = record.get("description")
    body["url"] = kind.page_url(context.site, record["slug"])
    body["startDate"] = _iso(record["start"], record["start_utc"])
    body["endDate"] = _iso(record["end"], record["end_utc"])
    body["image"] = (record.get("image") or {}).get("url")
    for name, linked in (("location", "venue"), ("organizer", "organizer")):
        target = LINKED[linked]
        assert target.json_ld is not None
        visible = visible_copies(linked, record, context.caller)
        body[name] = [target.json_ld(target, copy, context) for copy in visible]
    if prices := record["cost"]["details"]["values"]:
        body["offers"] = _offer(record, prices)
    return {name: value for name, value in body.items() if value}


def _iso(wall: datetime, utc: datetime) -> str:
    return show(wall).replace(" ", "T") + _offset(wall - utc)


@lru_cache(100)
def _offset(ahead: timedelta) -> str:
    return datetime.min.replace(tzinfo=timezone(ahead)).isoformat()[len("0001-01-01T00:00:00") :]


def _offer(record: Mapping[str, Any], prices: list[str]) -> Document:
    currency = record["cost"]["details"]["currency_code"]
    if len(prices) == 1:
        return {"@type": "Offer", "price": prices[0], "priceCurrency": currency}
    return {
        "@type": "AggregateOffer",
        "lowPrice": prices[0],
        "highPrice": prices[-1],
        "priceCurrency": currency,
    }


def changed_fields(kind: Kind, stored: Document, wanted: Document, caller: Caller) -> Document:
    """The fields that differ from the stored record. Links sent back as the caller sees them do not count."""
    return {
        name: value
        for name, value in wanted.items()
        if value != stored.get(name) and not (name in kind.links and are_shown(name, value, stored, caller))
    }


def are_shown(field: str, copies: list[Document], stored: Document, caller: Caller) -> bool:
    """Whether these are the links that the caller sees in the event; for posts the order counts."""
    sent, shown = ([copy["_id"] for copy in many] for many in (copies, visible_copies(field, stored, caller)))
    return sent == shown if LINKED[field].is_post else set(sent) == set(shown)


def copied_fields(kind: Kind) -> tuple[str, ...]:
    """The fields that events embed, besides the id and the version."""
    return ("slug", *kind.embedded_fields, *(COPIED_OF_POSTS if kind.is_post else ()))


def copy_of(kind: Kind, record: Document) -> Document:
    return {name: record.get(name) for name in ("_id", "version", *copied_fields(kind))}
