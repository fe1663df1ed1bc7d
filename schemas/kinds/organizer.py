"""Organizers: people or organizations that run events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import fields

from schemas.kind import Document, Kind, RenderContext
from schemas.kinds.post import (
    LinkedListInput,
    PostInput,
    PostResponse,
    describe,
    envelope,
    normalize_post,
    shown_texts,
)
from schemas.language import Text
from schemas.text_fields import MailAddress, Name, PlainText, WebAddress

CONTACT = ("phone", "website", "email")


class OrganizerInput(PostInput):
    """Request body of an organizer."""

    organizer = Name(required=True, metadata=describe(Text("organizer name"), label=Text("Name")))
    phone = PlainText(500, metadata=describe(Text("phone number")))
    website = WebAddress(metadata=describe(Text("website URL"), label=Text("Website")))
    email = MailAddress(metadata=describe(Text("e-mail address")))


class OrganizerResponse(PostResponse):
    """Representation of an organizer."""

    organizer = fields.String()
    phone = fields.String()
    website = fields.String()
    email = fields.String()


def represent(kind: Kind, record: Mapping[str, Any], context: RenderContext) -> Document:
    return envelope(kind, record, context) | shown_texts(record, "organizer", "description", "slug", *CONTACT)


def json_ld(kind: Kind, record: Mapping[str, Any], context: RenderContext) -> Document:
    """The organizer as a schema.org Organization."""
    body = {
        "@context": "https://schema.org",
        "@type": "Organization",
        "name": record["organizer"],
        "url": record.get("website") or kind.page_url(context.site, record["slug"]),
        "description": record.get("description"),
        "telephone": record.get("phone"),
        "email": record.get("email"),
    }
    return {name: value for name, value in body.items() if value}


ORGANIZER = Kind(
    name="organizer",
    plural="organizers",
    name_field="organizer",
    id_space="post",
    body_schema=OrganizerInput,
    query_schema=LinkedListInput,
    response_schema=OrganizerResponse,
    normalize=normalize_post,
    represent=represent,
    json_ld=json_ld,
    page="organizer",
    search_fields=("organizer", "description", *CONTACT),
    embedded_fields=("organizer", "description", "image", *CONTACT),
    example={"organizer": "City Arts Council", "email": "hello@arts.example.org", "phone": "+1 555 0100"},
    example_change={"website": "https://arts.example.org"},
    summaries={
        "list": Text("List organizers"),
        "create": Text("Create an organizer"),
        "read": Text("Read an organizer"),
        "update": Text("Update an organizer"),
        "delete": Text("Delete an organizer"),
        "readBySlug": Text("Read an organizer by slug"),
        "updateBySlug": Text("Update an organizer by slug"),
        "deleteBySlug": Text("Delete an organizer by slug"),
        "feed": Text("List organizers in another format"),
        "export": Text("Read an organizer in another format"),
        "exportBySlug": Text("Read an organizer by slug in another format"),
    },
    label=Text("Organizers"),
    form=("organizer", "email", "phone", "website", "description", "image", "status"),
)
