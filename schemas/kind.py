"""A kind of record is data: what it is called, what it takes, how it is shown."""

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
from schemas.fields import Many, Whole, site
from schemas.language import Text
from schemas.selection import Selection
from schemas.site import Site
from schemas.text_fields import SlugText, Words

Document = dict[str, Any]


class Input(Schema):
    """What a request may send. Optional fields can be cleared with null; unknown ones are ignored."""

    class Meta:
        unknown = EXCLUDE
        ordered = True

    def on_bind_field(self, field_name: str, field_obj: Field[Any]) -> None:
        field_obj.allow_none = field_obj.allow_none or not field_obj.required
        field_obj.error_messages["null"] = Text("Must not be empty.")

    @cached_property
    def has_defaults(self) -> bool:
        return any(field.load_default is not marshmallow.missing for field in self.fields.values())

    @pre_load
    def clear(self, values: Mapping[str, Any], **_: Any) -> Mapping[str, Any]:
        """An empty text clears an optional field, whatever its type."""
        if "" not in values.values():
            return values
        optional = {name for name, one in self.fields.items() if not one.required}
        return {name: None if value == "" and name in optional else value for name, value in values.items()}


class Shape(Schema):
    """What an answer shows: every key always, but for those that say when they are absent."""

    def on_bind_field(self, field_name: str, field_obj: Field[Any]) -> None:
        field_obj.required = not field_obj.metadata.get("absent")


class ReadInput(Input):
    """Parameters that every GET of records takes."""

    # The interface's word is one of marshmallow's too; the field is collected before that one is set.
    fields = Many(  # type: ignore[assignment]
        Words(200, allow_none=False),
        metadata={"description": Text("only these keys of each record, such as id,title,venue.city")},
    )


class ListInput(ReadInput):
    """Parameters that every list takes."""

    page = Whole(1, load_default=1, metadata={"description": Text("page of the list to return")})
    per_page = Whole(1, load_default=12, metadata={"description": Text("records per page")})

    @post_load
    def lower_per_page(self, values: Document, **_: Any) -> Document:
        return values | {"per_page": min(values["per_page"], site().max_per_page)}


@dataclass(frozen=True)
class View:
    """Who a representation is made for, and on which site."""

    site: Site
    caller: Caller
    selection: Selection | None = None
    """The keys to show; None for all of them."""

    @property
    def key(self) -> Hashable:
        """What makes a difference to what is shown."""
        return (self.site.namespace, self.caller.sight, self.selection and self.selection.names)


@dataclass(frozen=True)
class Kind:
    """One kind of record. Everything that differs between kinds is here; the paths are shared."""

    name: str
    plural: str
    title: str
    """The field that names a record."""
    ids: str
    """The id space: posts (events, venues, organizers) share one, terms the other."""
    schema: type[Input]
    query: type[ListInput]
    shape: type[Schema]
    """Documents the representation."""
    settle: Callable[[Document, Document | None, Site], Document]
    """(changes, stored record, site) -> the fields to store."""
    represent: Callable[[Kind, Mapping[str, Any], View], Document]
    page: str
    """Path of a record's page below the base URL."""
    searched: tuple[str, ...]
    """Fields whose text `search` looks through."""
    copied: tuple[str, ...]
    """Fields that an event keeps of a record it links to; empty for a kind that nothing links to."""
    sample: Mapping[str, Any]
    """An example of a body that creates one."""
    sample_change: Mapping[str, Any]
    """An example of a body that updates one."""
    summaries: Mapping[str, Text]
    """What a document calls each operation: list, create, read, update, delete and, of a post, the last three
    by slug."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Field -> name of the kind that it links to."""
    json_ld: Callable[[Kind, Mapping[str, Any], View], Document] | None = None

    @property
    def is_post(self) -> bool:
        return self.ids == "post"

    @cached_property
    def renaming(self) -> type[Input]:
        """The schema of an update by slug: the path names the record, so a slug in the body renames it."""
        members = {"slug": SlugText(metadata={"description": Text("new slug")})}
        return type(f"{self.schema.__name__}BySlug", (self.schema,), members)

    @cached_property
    def known_fields(self) -> frozenset[str]:
        """What can be sent, and what is shown and may be sent back."""
        return frozenset(name for one in (self.schema, self.renaming, self.shape) for name in one().fields)

    def rest_url(self, site: Site, id: int) -> str:
        return f"{site.api}/{self.plural}/{id}"

    def page_url(self, site: Site, slug: str) -> str:
        return f"{site.base_url}/{self.page}/{slug}/"


def load(schema: type[Input], values: Mapping[str, Any], site: Site, *, partial: bool = False) -> Document:
    """The values as the schema reads them, or one refusal that names every bad one."""
    data, problems = load_valid(schema, values, site, partial=partial)
    problems.refuse()
    return data


def load_valid(
    schema: type[Input], values: Mapping[str, Any], site: Site, *, partial: bool = False
) -> tuple[Document, Problems]:
    """The values that the schema can read, and what is wrong with the others."""
    reader = reader_of(schema)
    missing = [n for n, f in reader.fields.items() if f.required and values.get(n) is None and not partial]
    if missing:
        raise MissingFields(missing)
    try:
        with Context(site):
            # What is required is there; without defaults nothing is left to say of fields that were not sent.
            return dict(reader.load(values, partial=partial or not reader.has_defaults)), Problems()
    except ValidationError as error:
        said = error.messages if isinstance(error.messages, dict) else {"body": error.messages}
        problems = Problems({name: first(messages) for name, messages in said.items()})
        return dict(cast(Document, error.valid_data)), problems


@cache
def reader_of(schema: type[Input]) -> Input:
    """A schema ready to read with: making one costs more than reading with it."""
    return schema()


def first(said: Any) -> str:
    """The first message in marshmallow's nest of lists and mappings."""
    while not isinstance(said, str):
        said = next(iter(said.values() if isinstance(said, dict) else said))
    return said


def texts(kind: Kind, document: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """(field, text) of everything that `search` finds a record by."""
    for name in kind.searched:
        if isinstance(value := document.get(name), str):
            yield name, value
