"""`Kind` defines a kind of record as data: its names, schemas and representation."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, cast

import marshmallow
from marshmallow import EXCLUDE, Schema, ValidationError, post_load, pre_load
from marshmallow.experimental.context import Context
from marshmallow.fields import Field

from schemas.caller import Caller
from schemas.errors import MissingFields, Problems
from schemas.fields import Many, When, Whole, site
from schemas.language import Text
from schemas.selection import Selection
from schemas.site import Site
from schemas.text_fields import FreeText, SlugText

Document = dict[str, Any]


class Input(Schema):
    """Schema of a request. Optional fields can be cleared with null; unknown fields are ignored."""

    class Meta:
        unknown = EXCLUDE
        ordered = True

    def on_bind_field(self, field_name: str, field_obj: Field[Any]) -> None:
        field_obj.allow_none = field_obj.allow_none or not field_obj.required
        field_obj.error_messages["null"] = Text("Must not be empty.")

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        fields = self.fields.items()
        return {n: field.load_default for n, field in fields if field.load_default is not marshmallow.missing}

    @pre_load
    def clear(self, values: Mapping[str, Any], **_: Any) -> Mapping[str, Any]:
        """Treats an empty string as null in optional fields of any type."""
        if "" not in values.values():
            return values
        optional = {name for name, one in self.fields.items() if not one.required}
        return {name: None if value == "" and name in optional else value for name, value in values.items()}


class ResponseSchema(Schema):
    """Schema of a response. Every key is always present, except those with `absent` in their metadata."""

    def on_bind_field(self, field_name: str, field_obj: Field[Any]) -> None:
        field_obj.required = not field_obj.metadata.get("absent")


class ReadInput(Input):
    """Query parameters of every GET request for records."""

    # marshmallow's Schema also has an attribute `fields`, but sets it after collecting the declared fields.
    fields = Many(  # type: ignore[assignment]
        FreeText(200, allow_none=False),
        metadata={"description": Text("only these keys of each record, such as id,title,venue.city")},
    )


class ListInput(ReadInput):
    """Query parameters of every list."""

    page = Whole(1, load_default=1, metadata={"description": Text("page of the list to return")})
    per_page = Whole(1, load_default=12, metadata={"description": Text("records per page")})
    modified_after = When(metadata={"description": Text("only records that were changed after this time")})

    @post_load
    def lower_per_page(self, values: Document, **_: Any) -> Document:
        return values | {"per_page": min(values.get("per_page", 0), site().max_per_page)}


@dataclass(frozen=True)
class RenderContext:
    """The caller and the site that a representation is made for."""

    site: Site
    caller: Caller
    selection: Selection | None = None
    """The keys to include; None for all."""

    @property
    def key(self) -> Hashable:
        """Everything that affects the representation; used in cache keys."""
        return (self.site.namespace, self.caller.visibility_key, self.selection and self.selection.names)


@dataclass(frozen=True)
class Kind:
    """One kind of record. It holds everything that differs between kinds; the rest of the code is shared."""

    name: str
    plural: str
    name_field: str
    """Name of the field that holds a record's title or name."""
    id_space: str
    """The ID sequence: `post` for events, venues and organizers, `term` for categories and tags."""
    body_schema: type[Input]
    query_schema: type[ListInput]
    response_schema: type[Schema]
    """Schema of the representation."""
    normalize: Callable[[Document, Document | None, Site], Document]
    """(changes, stored record, site) -> the fields to store."""
    represent: Callable[[Kind, Mapping[str, Any], RenderContext], Document]
    page: str
    """Path of a record's web page, relative to the base URL."""
    search_fields: tuple[str, ...]
    """Fields that `search` covers."""
    embedded_fields: tuple[str, ...]
    """Fields that events copy from a linked record; empty if events do not link to this kind."""
    example: Mapping[str, Any]
    """Example request body for creating a record."""
    example_change: Mapping[str, Any]
    """Example request body for updating a record."""
    summaries: Mapping[str, Text]
    """Summary of each operation in the API description: list, create, read, update, delete and, for posts,
    the last three by slug."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Field -> name of the kind it links to."""
    facts: tuple[tuple[str, ...], ...] = ()
    """Fields that a record's web page shows, in lines; by default each text of its own has a line."""
    json_ld: Callable[[Kind, Mapping[str, Any], RenderContext], Document] | None = None
    label: Text | None = None
    """Heading of its lists on pages; without one, the plural is used."""
    form: tuple[str, ...] = ()
    """Fields that forms begin with, in this order; others follow in the order of the schema."""
    feed_query: Callable[[Document, Site], Document] = lambda query, site: query
    """(query of a feed, site) -> the same with the defaults that only feeds have."""

    @property
    def is_post(self) -> bool:
        return self.id_space == "post"

    @cached_property
    def slug_update_schema(self) -> type[Input]:
        """Schema for updates by slug: the path identifies the record, so a slug in the body renames it."""
        members = {
            "slug": SlugText(
                metadata={
                    "description": Text("new slug"),
                    "label": Text("Address of the page"),
                    "form": "more",
                }
            )
        }
        return type(f"{self.body_schema.__name__}BySlug", (self.body_schema,), members)

    @cached_property
    def feed_schema(self) -> type[Input]:
        """Schema for the query of a feed: the filters of the list, without pages and a choice of fields."""
        meta = type("Meta", (Input.Meta,), {"exclude": ("page", "per_page", "fields")})
        return type(self.query_schema.__name__.replace("List", "Feed"), (self.query_schema,), {"Meta": meta})

    @cached_property
    def known_fields(self) -> frozenset[str]:
        """Names of all request fields, and of all response fields, which clients may send back."""
        return frozenset(
            name
            for one in (self.body_schema, self.slug_update_schema, self.response_schema)
            for name in one().fields
        )

    def rest_url(self, site: Site, id: int) -> str:
        return f"{site.api}/{self.plural}/{id}"

    def page_url(self, site: Site, slug: str) -> str:
        return f"{site.base_url}/{self.page}/{slug}/"


def load(schema: type[Input], values: Mapping[str, Any], site: Site, *, partial: bool = False) -> Document:
    """Loads the values with the schema; raises one error that lists all invalid fields."""
    data, problems = load_valid(schema, values, site, partial=partial)
    problems.refuse()
    return data


def load_valid(
    schema: type[Input], values: Mapping[str, Any], site: Site, *, partial: bool = False
) -> tuple[Document, Problems]:
    """Loads the valid values with the schema, and collects an error message for each of the others."""
    reader = reader_of(schema)
    missing = [n for n, f in reader.fields.items() if f.required and values.get(n) is None and not partial]
    if missing:
        raise MissingFields(missing)
    try:
        with Context(site):
            # Required fields are present; with the defaults, fields that were not sent need no processing.
            sent = values if partial else {**reader.defaults, **values}
            return dict(reader.load(sent, partial=True)), Problems()
    except ValidationError as error:
        messages = error.messages if isinstance(error.messages, dict) else {"body": error.messages}
        problems = Problems({name: first_message(found) for name, found in messages.items()})
        return dict(cast(Document, error.valid_data)), problems


@cache
def reader_of(schema: type[Input]) -> Input:
    """A shared instance of the schema: creating one costs more than loading with it."""
    return schema()


def first_message(messages: Any) -> str:
    """The first message in marshmallow's nested lists and dicts of messages."""
    while not isinstance(messages, str):
        messages = next(iter(messages.values() if isinstance(messages, dict) else messages))
    return messages


def texts(kind: Kind, document: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """(field, text) for each text that `search` covers."""
    for name in kind.search_fields:
        if isinstance(value := document.get(name), str):
            yield name, value
