"""Posts: what events, venues and organizers have in common, such as author, status and publication date."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from marshmallow import fields

from schemas.caller import Caller
from schemas.errors import InvalidFields
from schemas.fields import Choice, Flag, Picture, Status, Statuses, When, Whole
from schemas.kind import Document, Input, Kind, ListInput, RenderContext, ResponseSchema
from schemas.kinds.image import ImageResponse, represent_image
from schemas.language import Text
from schemas.site import Site
from schemas.text_fields import FreeText, Html
from schemas.values.dates import show
from schemas.values.zones import parse_zone


def describe(text: Text, **more: Any) -> dict[str, Any]:
    """Field metadata for the API description, and for forms: `label` (by default the description), `help`,
    `form` ("more": folded away, "none": left out), `widget` (instead of the one of the field's class), `zone`
    ("site": a time in the site's time zone), `several` (more than one link is usual) and `together` (names of
    fields that must be sent with it)."""
    return {"description": text, **more}


class PostInput(Input):
    """Request fields of every post."""

    author = Whole(metadata=describe(Text("author ID"), form="more"))
    date = When(
        metadata=describe(
            Text("publication date in the site's time zone"),
            label=Text("Publish on"),
            form="more",
            zone="site",
        )
    )
    date_utc = When(metadata=describe(Text("publication date in UTC"), form="none"))
    description = Html(metadata=describe(Text("description")))
    status = Status(
        metadata=describe(
            Text("post status; only publish is visible to the public"),
            label=Text("Status"),
            example="publish",
        )
    )
    image = Picture(
        metadata=describe(
            Text("featured image, an ID or a URL"),
            label=Text("Image"),
            help=Text("Address of an image on the web"),
        )
    )


class PostListInput(ListInput):
    """Query parameters of every list of posts."""

    search = FreeText(200, metadata=describe(Text("text in the name, description or other text fields")))
    status = Statuses(metadata=describe(Text("only records with these statuses")))
    orderby = Choice("date", "modified", "title", "id", metadata=describe(Text("what to sort by")))
    order = Choice("asc", "desc", metadata=describe(Text("sort direction, ascending or descending")))


class LinkedListInput(PostListInput):
    """Query parameters of the lists of venues and organizers, which events link to."""

    event = Whole(1, metadata=describe(Text("only records linked from this event ID")))
    has_events = Flag(metadata=describe(Text("only records that have events, or only those that have none")))
    only_with_upcoming = Flag(
        load_default=False, metadata=describe(Text("only records with events that have not ended"))
    )


def normalize_post(changes: Document, stored: Document | None, site: Site) -> Document:
    """The fields to store for a post. Until its publication date a published post has status `future`."""
    normalized = {name: value for name, value in changes.items() if name not in ("date", "date_utc")}
    if normalized.get("author", 0) is None:
        del normalized["author"]
    if (date := _publication(changes, stored, site)) or stored is None:
        normalized["date_utc"] = date or site.now()
    status = normalized.get("status") or (stored or {}).get("status")
    if status in ("publish", "future") and ("date_utc" in normalized or "status" in normalized):
        date = normalized.get("date_utc") or (stored or {})["date_utc"]
        normalized["status"] = "future" if date > site.now() else "publish"
    return normalized | _trashed_from(normalized.get("status"), stored)


def _trashed_from(status: str | None, stored: Document | None) -> Document:
    """The status that a record has before it is moved to the trash: feeds show public ones as cancelled."""
    if stored is None or status is None or (status == "trash") == (stored["status"] == "trash"):
        return {}
    return {"trashed_from": stored["status"] if status == "trash" else None}


def apply_role_limits(data: Document, caller: Caller, stored: Document | None) -> Document:
    """The data of a post, limited to what the caller's role permits."""
    allowed = dict(data)
    if not caller.writes_all:
        allowed.pop("author", None)
    if stored is None and not allowed.get("status"):
        allowed["status"] = "publish" if caller.publishes else "draft"
    if not caller.publishes and allowed.get("status") in ("publish", "future"):
        allowed["status"] = "pending"
    if "status" in allowed and not allowed["status"]:
        del allowed["status"]
    return allowed


def _publication(changes: Document, stored: Document | None, site: Site) -> datetime | None:
    """The publication date in the request, in UTC. A record that is sent back has both dates: the local one
    counts if it is the only one that was changed."""
    utc, local = (_instant(name, changes, site) for name in ("date_utc", "date"))
    if utc is None or local is None:
        return utc or local
    is_unchanged = stored is not None and utc == stored["date_utc"]
    return local if is_unchanged and site.zone.to_wall(local) != site.zone.to_wall(utc) else utc


def _instant(name: str, changes: Document, site: Site) -> datetime | None:
    """A date of the request in UTC; it must also be within range in the site's time zone."""
    if (sent := changes.get(name)) is None:
        return None
    try:
        instant: datetime = sent.utc(parse_zone("UTC") if name == "date_utc" else site.zone)
        site.zone.to_wall(instant)
    except ValueError as error:
        raise InvalidFields({name: error.args[0]}) from None
    return instant


def _local(site: Site, utc: datetime) -> datetime:
    """The time in the site's time zone, or in UTC if that is outside the years 1 to 9999."""
    try:
        return site.zone.to_wall(utc)
    except ValueError:
        return utc


def envelope(kind: Kind, record: Mapping[str, Any], context: RenderContext) -> Document:
    """The fields that every post's representation starts with."""
    site, id = context.site, record["_id"]
    global_id = f"{site.host}?id={id}"
    return {
        "id": id,
        "global_id": global_id,
        "global_id_lineage": [global_id],
        "author": record["author"],
        "status": record["status"],
        "date": show(_local(site, record["date_utc"])),
        "date_utc": show(record["date_utc"]),
        "modified": show(site.zone.to_wall(record["modified_utc"])),
        "modified_utc": show(record["modified_utc"]),
        "url": kind.page_url(site, record["slug"]),
        "rest_url": kind.rest_url(site, id),
    }


def shown_texts(record: Mapping[str, Any], *names: str) -> Document:
    """The text fields, with an empty string for unset ones, and the image."""
    return {name: record.get(name) or "" for name in names} | {"image": represent_image(record.get("image"))}


def flag(name: str, record: Mapping[str, Any]) -> bool:
    """A flag of a record; the map flags are true by default, the others false."""
    value = record.get(name)
    return name.startswith("show_map") if value is None else bool(value)


def shown_time() -> fields.String:
    return fields.String(metadata={"pattern": r"^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}$"})


def shown_warnings() -> fields.List[Any]:
    text = Text("after a write only: what was ignored or is unusual, such as unknown fields")
    return fields.List(fields.String(), metadata=describe(text, absent=True))


class PostResponse(ResponseSchema):
    """Representation fields of every post."""

    id = fields.Integer()
    global_id = fields.String()
    global_id_lineage = fields.List(fields.String())
    author = fields.Integer()
    status = fields.String()
    date = shown_time()
    date_utc = shown_time()
    modified = shown_time()
    modified_utc = shown_time()
    url = fields.String()
    rest_url = fields.String()
    description = fields.String()
    slug = fields.String()
    image = fields.Raw(
        metadata=describe(
            Text("featured image; false if there is none"),
            one_of=(fields.Nested(ImageResponse), fields.Boolean(metadata={"enum": [False]})),
        )
    )
    json_ld = fields.Dict(
        metadata=describe(Text("schema.org description, on a single record only"), absent=True)
    )
    warnings = shown_warnings()
