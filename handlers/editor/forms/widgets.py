"""Widgets: how a field of each class is shown in a form, and how what was typed becomes a value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from marshmallow.fields import Field

from handlers.editor.forms.conversions import (
    Raw,
    as_flag,
    as_line,
    as_list,
    as_sorted_list,
    as_text,
    as_typed,
    flag_in,
    ids_of,
    links_in,
    moment_of,
    names_in,
    names_of,
    number_of,
    picture_of,
    sorted_ids_of,
    text_of,
)
from schemas import fields, links, text_fields

if TYPE_CHECKING:
    from handlers.editor.forms.fields import FormField


@dataclass(frozen=True)
class Widget:
    """A macro of widgets.html, and the conversions between values of the API and inputs."""

    macro: str
    show: Callable[[Any], Raw] = text_of
    """(value in the representation) -> what the input holds."""
    read: Callable[[Any], Raw] = as_line
    """(what was sent) -> what the input held."""
    value: Callable[[Raw, FormField], Any] = as_typed
    """(what the input held, field) -> the value that the API takes."""
    is_half: bool = False
    """Whether two of them fit side by side."""


WIDGETS: dict[type[Field[Any]], Widget] = {
    Field: Widget("line"),
    text_fields.PlainText: Widget("line", is_half=True),
    text_fields.Html: Widget("lines", read=as_text),
    text_fields.WebAddress: Widget("url"),
    text_fields.MailAddress: Widget("email", is_half=True),
    fields.Flag: Widget("checkbox", as_flag, as_flag, flag_in, is_half=True),
    fields.Status: Widget("status", is_half=True),
    fields.Choice: Widget("choice", is_half=True),
    fields.Number: Widget("number", is_half=True),
    fields.Whole: Widget("whole", number_of, is_half=True),
    fields.When: Widget("moment", moment_of, is_half=True),
    fields.Zoned: Widget("zone", is_half=True),
    fields.CostField: Widget("cost", is_half=True),
    fields.Picture: Widget("picture", picture_of),
    links.TermLinks: Widget("names", names_of, as_line, names_in),
    links.PostLinks: Widget("links", ids_of, as_list, links_in),
}
"""Class of a field -> its widget; a class without one has that of its base class."""
NAMED = {
    "password": Widget("password", show=lambda value: "", is_half=True),
    "parent": Widget("parent", number_of, is_half=True),
    "tree": Widget("tree", sorted_ids_of, as_sorted_list, links_in),
}
"""Widgets that metadata can name."""


def widget_of(field: Field[Any]) -> Widget:
    if name := field.metadata.get("widget"):
        return NAMED[name]
    return next(WIDGETS[base] for base in type(field).__mro__ if base in WIDGETS)
