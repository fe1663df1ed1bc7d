"""Terms: what categories and tags have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import fields

from schemas.fields import Choice, Flag, Many, Whole
from schemas.kind import Document, Input, Kind, ListInput, Shape, View
from schemas.language import Text
from schemas.post import about, shown_warnings
from schemas.site import Site
from schemas.text_fields import Html, Name, SlugText, Words

ORDERS = ("name", "slug", "id", "count", "parent", "description", "include")


class TermInput(Input):
    """Request body of a term."""

    name = Name(required=True, metadata=about(Text("term name")))
    description = Html(metadata=about(Text("description")))
    slug = SlugText(metadata=about(Text("slug")))


class TermListInput(ListInput):
    """Query parameters of the category and tag lists."""

    search = Words(200, metadata=about(Text("only terms whose name or slug contains the text")))
    # marshmallow's Schema also has an attribute `exclude`, but sets it after collecting the declared fields.
    exclude = Many(Whole(1), metadata=about(Text("leave out these IDs")))  # type: ignore[assignment]
    include = Many(Whole(1), metadata=about(Text("only these IDs")))
    order = Choice("asc", "desc", metadata=about(Text("sort direction, ascending or descending")))
    orderby = Choice(*ORDERS, metadata=about(Text("what to sort by")))
    hide_empty = Flag(load_default=True, metadata=about(Text("leave out terms without published events")))
    post = Whole(1, metadata=about(Text("only terms of this event ID")))
    event = Whole(1, metadata=about(Text("only terms of this event ID; takes precedence over post")))
    slug = Words(500, metadata=about(Text("only the term with this slug")))


class UrlsShape(Shape):
    """URLs of a term, its list and its parent."""

    self = fields.String()
    collection = fields.String()
    up = fields.String(metadata={"absent": True})


class TermShape(Shape):
    """Representation of a term."""

    id = fields.Integer()
    name = fields.String()
    slug = fields.String()
    description = fields.String()
    taxonomy = fields.String()
    parent = fields.Integer(
        metadata=about(Text("parent category, 0 at the top; categories only"), absent=True)
    )
    count = fields.Integer(
        metadata=about(Text("number of published events; not shown inside events"), absent=True)
    )
    url = fields.String()
    urls = fields.Nested(UrlsShape)
    warnings = shown_warnings()


def settle(changes: Document, stored: Document | None, site: Site) -> Document:
    settled = dict(changes)
    if "parent" in settled:
        settled["parent"] = settled["parent"] or 0
    return settled


def represent(kind: Kind, record: Mapping[str, Any], view: View) -> Document:
    site, id = view.site, record["_id"]
    urls = {"self": kind.rest_url(site, id), "collection": f"{site.api}/{kind.plural}"}
    shown = {
        "id": id,
        "name": record["name"],
        "slug": record["slug"],
        "description": record.get("description") or "",
    }
    shown["taxonomy"] = f"event_{kind.name}"
    if "parent" in kind.copied:
        shown["parent"] = parent = record.get("parent", 0)
        urls |= {"up": kind.rest_url(site, parent)} if parent else {}
    if "events" in record:
        shown["count"] = record["events"]["publish"]
    return shown | {"url": kind.page_url(site, record["slug"]), "urls": urls}
