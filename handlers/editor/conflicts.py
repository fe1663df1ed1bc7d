"""Two people changed one record: what each of them wants, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from handlers.editor.forms import Form
from handlers.editor.forms.fields import FormField
from handlers.editor.records import version_in, was_in
from handlers.pages.context import PageContext
from schemas.language import Text


@dataclass(frozen=True)
class Difference:
    """A field that is not the same in both."""

    label: str
    mine: str
    theirs: str
    is_mine: bool
    """Whether the form goes on with what was typed; otherwise with what was saved meanwhile."""


def replaced_version(current: Form, sent: Mapping[str, Any]) -> int:
    """The version that a sent form replaces."""
    return same_version(current, version_in(sent), was_in(sent))


def same_version(current: Form, version: int, was: Mapping[str, str]) -> int:
    """The version that was seen, or the current one if that holds the same values. Then only copies of linked
    records have changed, of which a form shows nothing."""
    return current.version if version and was == current.was else version


def merge(typed: Form, current: Form, page: PageContext) -> list[Difference]:
    """Put what was typed into the form of the current version, and tell the differences."""
    touched = {one.name for one in typed.changed}
    found = []
    for mine, theirs in zip(typed.fields, current.fields, strict=True):
        mine.options = theirs.options
        if mine.raw != theirs.raw and mine.widget.macro != "password":
            is_mine = mine.name in touched
            found.append(Difference(theirs.label, plain(mine, page), plain(theirs, page), is_mine))
        if mine.name in touched:
            theirs.raw, theirs.new = mine.raw, mine.new
    return found


def plain(field: FormField, page: PageContext) -> str:
    """What an input holds, in words."""
    if field.widget.macro == "checkbox":
        return page.text(Text("Yes") if field.raw else Text("No"))
    names = {option.id: option.name for option in field.options}
    if field.widget.macro in ("status", "parent"):
        return names.get(str(field.raw), str(field.raw))
    if isinstance(field.raw, list):
        return ", ".join(names.get(id, f"#{id}") for id in field.raw)
    return field.raw.replace("T", " ") if field.widget.macro == "moment" else field.raw
