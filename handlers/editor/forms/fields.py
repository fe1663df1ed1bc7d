"""The fields of a form: those of a kind's schema, each with its widget and what its input holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import orjson
from marshmallow.fields import Field

from handlers.editor.forms.conversions import Raw
from handlers.editor.forms.widgets import Widget, widget_of
from schemas.caller import Caller
from schemas.kind import Input, Kind, reader_of
from schemas.links import PostLinks


@dataclass(frozen=True)
class Option:
    """A record that an input offers."""

    id: str
    name: str
    depth: int = 0
    """Number of categories above it."""


@dataclass
class FormField:
    """One field of a form."""

    name: str
    schema_field: Field[Any]
    widget: Widget
    prefix: str = ""
    """Name of the link field whose new record this is a field of."""
    raw: Raw = ""
    problem: str = ""
    note: str = ""
    """How the value is understood."""
    is_warning: bool = False
    """Whether that may be a surprise."""
    options: list[Option] = field(default_factory=list)
    linked: list[Option] = field(default_factory=list)
    """The records that the stored record links to."""
    is_cut: bool = False
    """Whether there may be more records than the options: others are typed by ID."""
    new: list[FormField] = field(default_factory=list)
    """Fields of a new record to link to."""

    @property
    def key(self) -> str:
        """Name of its inputs."""
        return f"{self.prefix}[{self.name}]" if self.prefix else self.name

    @property
    def id(self) -> str:
        return "-".join(filter(None, ("field", self.prefix, self.name)))

    @property
    def label(self) -> str:
        metadata = self.schema_field.metadata
        return str(metadata.get("label") or metadata.get("description") or self.name)

    @property
    def help(self) -> str:
        return str(self.schema_field.metadata.get("help", ""))

    @property
    def is_required(self) -> bool:
        return self.schema_field.required and not self.prefix

    @property
    def together(self) -> tuple[str, ...]:
        """Names of the fields that must be sent with this one."""
        return tuple(self.schema_field.metadata.get("together", ()))

    @property
    def is_folded(self) -> bool:
        return self.schema_field.metadata.get("form") == "more"

    @property
    def slots(self) -> list[str]:
        """The records that inputs are shown for; an empty one is for another record."""
        several = bool(self.schema_field.metadata.get("several"))
        return [*self.raw, ""] if several or not self.raw else [*self.raw]

    @property
    def others(self) -> list[Option]:
        """The records that were typed by ID."""
        known = {option.id for option in self.options}
        return [Option(id, f"#{id}") for id in self.raw if id not in known]

    @property
    def new_key(self) -> str:
        """Name that the inputs of a new linked record begin with."""
        return f"{self.name}_new"

    @property
    def value(self) -> Any:
        """The value that the API takes."""
        return self.widget.value(self.raw, self)

    @property
    def digest(self) -> str:
        """Tells whether the input was changed since the form was made."""
        return digest_of(self.raw)

    def show(self, value: Any) -> None:
        """Hold a value of the representation, as a browser would send it back."""
        self.raw = self.widget.read(self.widget.show(value))

    def take(self, sent: Mapping[str, Any]) -> None:
        """Hold what was typed."""
        self.raw = self.widget.read(sent.get(self.name))
        new = sent.get(self.new_key)
        for inner in self.new:
            inner.take(new if isinstance(new, Mapping) else {})

    @property
    def typed_new(self) -> dict[str, Any]:
        """The data of the new record that was typed; empty if there is none."""
        return {inner.name: inner.value for inner in self.new if inner.raw}

    def each(self) -> Iterator[FormField]:
        yield self
        yield from self.new


def digest_of(value: Any) -> str:
    return blake2b(orjson.dumps(value), digest_size=6).hexdigest()


def fields_of(kind: Kind, schema: type[Input], caller: Caller, prefix: str = "") -> list[FormField]:
    """The fields of a form in the order in which it has them."""
    known = reader_of(schema).fields
    first = [kind.name_field, *kind.form]
    order = [*dict.fromkeys(name for name in (*first, *known) if name in known)]
    shown = [name for name in order if known[name].metadata.get("form") != "none"]
    if not caller.writes_all and "author" in shown:
        shown.remove("author")
    return [_field(name, known[name], caller, prefix) for name in shown]


def _field(name: str, schema_field: Field[Any], caller: Caller, prefix: str) -> FormField:
    made = FormField(name, schema_field, widget_of(schema_field), prefix)
    if isinstance(schema_field, PostLinks):
        target = schema_field.kind
        inner = fields_of(target, target.body_schema, caller, made.new_key)
        made.new = [one for one in inner if not one.is_folded and one.name not in ("status", "description")]
    made.raw = made.widget.read(made.widget.show(None))
    return made
