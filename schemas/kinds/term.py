"""Terms: what categories and tags have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import fields

from schemas.fields import Choice, Flag, Many, Whole
from schemas.kind import Document, Input, Kind, ListInput, RenderContext, ResponseSchema
from schemas.kinds.post import describe, shown_warnings
from schemas.language import Text
from schemas.site import Site
from schemas.text_fields import FreeText, Html, Name, SlugText

ORDERS = ("name", "slug", "id", "count", "parent", "description", "include")


class TermInput(Input):
    """Request body of a term."""

    name = Name(required=True, metadata=describe(Text("term name"), label=Text("Name")))
    description = Html(metadata=describe(Text("description")))
    slug = SlugText(metadata=describe(Text("slug"), label=Text("Address of the page"), form="more"))


class TermListInput(ListInput):
    """Query parameters of the category and tag lists."""

    search = FreeText(200, metadata=describe(Text("only terms whose name or slug contains the text")))
    # marshmallow's Schema also has an attribute `exclude`, but sets it after collecting the declared fields.
    exclude = Many(Whole(1), metadata=describe(Text("leave out these IDs")))  # type: ignore[assignment]
    include = Many(Whole(1), metadata=describe(Text("only these IDs")))
    order = Choice("asc", "desc", metadata=describe(Text("sort direction, ascending or descending")))
    orderby = Choice(*ORDERS, metadata=describe(Text("what to sort by")))
    hide_empty = Flag(load_default=True, metadata=describe(Text("leave out terms without published events")))
    post = Whole(1, metadata=describe(Text("only terms of this event ID")))
    event = Whole(1, metadata=describe(Text("only terms of this event ID; takes precedence over post")))
    slug = FreeText(500, metadata=describe(Text("only the term with this slug")))


class UrlsResponse(ResponseSchema):
    """URLs of a term, its list and its parent."""

    self = fields.String()
    collection = fields.String()
    up = fields.String(metadata={"absent": True})


class TermResponse(ResponseSchema):
    """Representation of a term."""

    id = fields.Integer()
    name = fields.String()
    slug = fields.String()
    description = fields.String()
    taxonomy = fields.String()
    parent = fields.Integer(
        metadata=describe(Text("parent category, 0 at the top; categories only"), absent=True)
    )
    count = fields.Integer(
        metadata=describe(Text("number of published events; not shown inside events"), absent=True)
    )
    url = fields.String()
    urls = fields.Nested(UrlsResponse)
    warnings = shown_warnings()


def normalize(changes: Document, stored: Document | None, site: Site) -> Document:
    normalized = dict(changes)
    if "parent" in normalized:
        normalized["parent"] = normalized["parent"] or 0
    return normalized


def represent(kind: Kind, record: Mapping[str, Any], context: RenderContext) -> Document:
    site, id = context.site, record["_id"]
    urls = {"self": kind.rest_url(site, id), "collection": f"{site.api}/{kind.plural}"}
    shown = {
        "id": id,
        "name": record["name"],
        "slug": record["slug"],
        "description": record.get("description") or "",
    }
    shown["taxonomy"] = f"event_{kind.name}"
    if "parent" in kind.embedded_fields:
        shown["parent"] = parent = record.get("parent", 0)
        urls |= {"up": kind.rest_url(site, parent)} if parent else {}
    if "events" in record:
        shown["count"] = record["events"]["publish"]
    return shown | {"url": kind.page_url(site, record["slug"]), "urls": urls}
