"""A kind of record is data: what it is called, what it takes, how it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import marshmallow
from marshmallow import EXCLUDE, Schema, ValidationError, pre_load
from marshmallow.experimental.context import Context
from marshmallow.fields import Field

from schemas.caller import Caller
from schemas.errors import InvalidFields, MissingFields
from schemas.fields import SlugText, Whole
from schemas.language import Text
from schemas.site import Site

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


class ListInput(Input):
    """Parameters that every list takes."""

    page = Whole(1, load_default=1, metadata={"description": Text("page of the list to return")})
    per_page = Whole(1, load_default=12, metadata={"description": Text("records per page")})


@dataclass(frozen=True)
class View:
    """Who a representation is made for, and on which site."""

    site: Site
    caller: Caller


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

    def rest_url(self, site: Site, id: int) -> str:
        return f"{site.api}/{self.plural}/{id}"

    def page_url(self, site: Site, slug: str) -> str:
        return f"{site.base_url}/{self.page}/{slug}/"


def load(schema: type[Input], values: Mapping[str, Any], site: Site, *, partial: bool = False) -> Document:
    """The values as the schema reads them, or one refusal that names every bad one."""
    reader = reader_of(schema)
    missing = [n for n, f in reader.fields.items() if f.required and values.get(n) is None and not partial]
    if missing:
        raise MissingFields(missing)
    try:
        with Context(site):
            # What is required is there; without defaults nothing is left to say of fields that were not sent.
            return dict(reader.load(values, partial=partial or not reader.has_defaults))
    except ValidationError as error:
        said = error.messages if isinstance(error.messages, dict) else {"body": error.messages}
        raise InvalidFields({name: first(messages) for name, messages in said.items()}) from None


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
