"""Fields for links from an event to other records, in every form that clients may send."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, fields

from schemas.errors import InvalidFields, MissingFields
from schemas.fields import site, spread, whole
from schemas.kind import Kind, load
from schemas.language import Text
from schemas.text_fields import clean, limited
from schemas.values.sanitizing import plain_text

MAX_LINKS = 100


def is_number(value: Any) -> bool:
    """Whether a value is a string of digits, which is taken as an ID if a record has that ID."""
    return isinstance(value, str) and re.fullmatch(r"[0-9]{1,19}", value) is not None


class LinkList(fields.List[Any]):
    """Links to records: IDs, objects with an `id`, and another form that depends on the kind."""

    repeats = True

    def __init__(self, kind: Kind, other: fields.Field[Any], **options: Any) -> None:
        id = fields.Integer(metadata={"minimum": 0, "format": "int64"})
        self.kind, self.forms = kind, (id, other)
        super().__init__(fields.Raw(metadata={"one_of": self.forms}), **options)

    def _deserialize(self, value: Any, attr: Any, data: Any, **_: Any) -> Any:
        parts = [part for part in spread(value) if str(part) != "0"]
        if len(parts) > MAX_LINKS:
            raise ValidationError(Text("Must have at most {limit} items.", limit=MAX_LINKS))
        found = [self.link(part) for part in parts]
        return [link for index, link in enumerate(found) if link not in found[:index]]

    def link(self, value: Any) -> Any:
        is_object = isinstance(value, Mapping) and bool(value.get("id"))
        given = value["id"] if is_object else value
        # For terms, a string of digits may also be a slug or a name; the lookup decides.
        if isinstance(given, int) or (is_number(given) and (is_object or self.kind.is_post)):
            return whole(given, 1)
        return self.other(given)

    def other(self, value: Any) -> Any:
        raise NotImplementedError


class TermLinks(LinkList):
    """Categories or tags: IDs, slugs or names."""

    def __init__(self, kind: Kind, **options: Any) -> None:
        super().__init__(kind, fields.String(), **options)

    def other(self, value: Any) -> str:
        if not isinstance(value, str):
            raise ValidationError(Text("Must be IDs, slugs or names."))
        if not (name := plain_text(limited(clean(value), 500)).strip()):
            raise ValidationError(Text("Must not be blank."))
        return name


class PostLinks(LinkList):
    """Venues or organizers: IDs, or the data of new records; a single one need not be in an array."""

    def __init__(self, kind: Kind, **options: Any) -> None:
        super().__init__(kind, fields.Nested(kind.body_schema), **options)
        self.metadata = {**self.metadata, "one_of": (*self.forms, fields.List(self.inner))}

    def other(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise ValidationError(Text("Must be IDs, or objects with the data of new records."))
        try:
            data = load(self.kind.body_schema, value, site())
            self.kind.normalize(data, None, site())  # refuses dates that cannot be converted to UTC
        except MissingFields as problem:
            raise refused(", ".join(sorted(problem.data["params"]))) from None
        except InvalidFields as problem:
            template = ", ".join(f"{name} ({{{name}}})" for name in sorted(problem.params))
            raise refused(Text(template, **problem.params)) from None  # translated with its values
        return data


def refused(names: str) -> ValidationError:
    return ValidationError(Text("Invalid data for a new record: {names}.", names=names))
