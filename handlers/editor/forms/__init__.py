"""A form: the fields of a record, what was changed in them, and the values to send to the store."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from handlers.editor.forms.fields import FormField, digest_of, fields_of
from handlers.pages.context import PageContext
from schemas.caller import Caller
from schemas.errors import Problems
from schemas.kind import Document, Kind, load_valid, reader_of
from schemas.kinds.event_representation import is_locked
from schemas.kinds.post import flag
from schemas.language import Text
from schemas.links import PostLinks
from schemas.site import Site

EMPTY = Text("Must not be empty.")


@dataclass
class Form:
    """A form for a record of any kind."""

    kind: Kind
    fields: list[FormField]
    is_new: bool
    was: dict[str, str]
    """Field -> digest of its input when the form was made: others are not sent to the store."""
    key: str = ""
    """Identifies the form of a new record: sent twice, as by a double click, it creates one record."""
    version: int = 0
    password: str = ""
    """The password with which a protected event was opened."""
    removes_password: bool = False

    @property
    def main(self) -> list[FormField]:
        return [one for one in self.fields if not one.is_folded]

    @property
    def folded(self) -> list[FormField]:
        return [one for one in self.fields if one.is_folded]

    @property
    def problems(self) -> list[FormField]:
        return [one for one in self.each() if one.problem]

    def each(self) -> Iterator[FormField]:
        for one in self.fields:
            yield from one.each()

    def field(self, name: str) -> FormField | None:
        return next((one for one in self.fields if one.name == name), None)

    def text(self, name: str) -> str:
        """What an input of one value holds."""
        found = self.field(name)
        return found.raw if found and isinstance(found.raw, str) else ""

    @property
    def was_text(self) -> str:
        return orjson.dumps(self.was).decode()

    def show(self, shown: Mapping[str, Any]) -> None:
        """Hold a record, as the API represents it."""
        for one in self.fields:
            one.show(shown.get(one.name))
        if shown.get("all_day"):
            for name in ("start_date", "end_date"):
                if edge := self.field(name):
                    edge.raw = str(edge.raw)[:10]

    def take(self, sent: Mapping[str, Any]) -> None:
        """Hold what was typed."""
        for one in self.fields:
            one.take(sent)
        self.removes_password = bool(sent.get("password_remove"))

    def remember(self) -> None:
        """From now on, fields count as changed if their inputs differ from what they hold now."""
        self.was = {one.name: one.digest for one in self.fields}

    @property
    def changed(self) -> list[FormField]:
        """Fields to send, with those that must be sent together with them."""
        names = {one.name for one in self.fields if self._is_changed(one)}
        names |= {name for one in self.fields if one.name in names for name in one.together}
        return [one for one in self.fields if one.name in names]

    def _is_changed(self, one: FormField) -> bool:
        if self.is_new and (one.is_required or one.name == "status"):
            return True
        return bool(one.typed_new) or (one.name in self.was and one.digest != self.was[one.name])

    @property
    def values(self) -> Document:
        """The values of the changed fields."""
        values = {one.name: one.value for one in self.changed}
        for one in self.changed:
            if new := one.typed_new:
                values[one.name] = [*values[one.name], new]
        if "password" in values and not self.is_new:
            values["new_password"] = values.pop("password")
        if self.removes_password and not self.is_new:
            values["new_password"] = ""
        return values

    def load(self, values: Document, site: Site) -> tuple[Document, Problems]:
        """Validate values as the API does. Missing ones and those of new linked records have their own
        messages, so that all are shown at once."""
        schema = self.kind.body_schema if self.is_new else self.kind.slug_update_schema
        inner = self._problems_of_new(site)
        missing = {one.name: EMPTY for one in self.fields if one.is_required and values.get(one.name) == ""}
        sound = {name: value for name, value in values.items() if name not in missing}
        defaults = reader_of(schema).defaults if self.is_new else {}
        data, problems = load_valid(schema, {**defaults, **sound}, site, partial=True)
        return data, Problems({**problems, **missing, **inner})

    def _problems_of_new(self, site: Site) -> Problems:
        found = Problems()
        for one in self.fields:
            if isinstance(one.schema_field, PostLinks) and (new := one.typed_new):
                target = one.schema_field.kind
                _, wrong = load_valid(target.body_schema, new, site, partial=True)
                if not new.get(target.name_field):
                    wrong[target.name_field] = EMPTY
                found |= {f"{one.new_key}[{name}]": text for name, text in wrong.items()}
        return found


def empty_form(kind: Kind, caller: Caller, site: Site) -> Form:
    """The form of a new record, with the values that it has unless others are sent."""
    form = Form(kind, fields_of(kind, kind.body_schema, caller), True, {}, secrets.token_urlsafe(12))
    for one in form.fields:
        if one.widget.macro == "checkbox":
            one.show(flag(one.name, {}))
    for name, value in (
        ("timezone", site.zone.name),
        ("status", "publish" if caller.publishes else "pending"),
    ):
        if found := form.field(name):
            found.raw = value
    form.remember()
    return form


def record_form(kind: Kind, record: Mapping[str, Any], shown: Document, caller: Caller) -> Form:
    """The form of a stored record."""
    schema = kind.slug_update_schema if kind.is_post else kind.body_schema
    form = Form(kind, fields_of(kind, schema, caller), False, {}, version=record["version"])
    form.show(shown)
    form.remember()
    # No input holds it, but a form must not replace one that was set meanwhile.
    form.was["stored_password"] = digest_of(record.get("password"))
    return form


def stored_form(kind: Kind, record: Document, page: PageContext) -> Form:
    """The form that a record has for the caller, without options to choose from."""
    return record_form(kind, record, kind.represent(kind, record, page.records), page.caller)


def stored_digests(kind: Kind, record: Document, page: PageContext) -> str:
    """The digests of a record, for a form without its fields. Those of a protected event would confirm what
    somebody guesses who does not know its password."""
    is_hidden = is_locked(record) and not page.caller.bypasses_passwords
    return "" if is_hidden else stored_form(kind, record, page).was_text
