"""Widgets: how a field of each class is shown in a form, and how what was typed becomes a value."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from marshmallow.fields import Field

from schemas import fields, links, text_fields

if TYPE_CHECKING:
    from handlers.editor.form_fields import FormField

Raw = str | list[str]
"""What an input holds: a text, or the values of several inputs with the same name."""
ENDS_OF_LINES = re.compile(r"\r\n?")


def as_text(sent: Any) -> str:
    """The value of one input; empty for forms that no page of ours sends."""
    return ENDS_OF_LINES.sub("\n", sent) if isinstance(sent, str) else ""


def as_line(sent: Any) -> str:
    """The value of an input of one line, from which browsers remove line ends."""
    return re.sub(r"[\r\n]", "", sent) if isinstance(sent, str) else ""


def as_list(sent: Any) -> list[str]:
    """The values of inputs with the same name, without empty ones."""
    values = sent if isinstance(sent, list) else [sent]
    return [value for value in values if isinstance(value, str) and value]


def as_flag(sent: Any) -> str:
    return "1" if sent else ""


def text_of(value: Any) -> str:
    return "" if value is None or value is False else str(value)


def number_of(value: Any) -> str:
    """An ID or a number; 0 stands for none where IDs are shown."""
    return str(value) if value else "" if isinstance(value, int) or value is None else str(value)


def moment_of(value: Any) -> str:
    """`2027-06-01 10:00:00` in the notation of browsers, which leave out seconds that are zero."""
    return text_of(value).replace(" ", "T").removesuffix(":00") if value else ""


def picture_of(value: Any) -> str:
    return text_of(value["url"] or value["id"]) if isinstance(value, Mapping) else ""


def ids_of(value: Any) -> list[str]:
    """The IDs of linked records; a single one need not be in an array."""
    return [str(one["id"]) for one in (value if isinstance(value, list) else [value]) if one]


def sorted_ids_of(value: Any) -> list[str]:
    return sorted(ids_of(value), key=int)


def names_of(value: Any) -> str:
    """Names, separated by commas; those that contain one are in quotes."""
    return ", ".join(_quoted(one["name"]) for one in value or ())


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"' if re.search(r'[",]|^\s|\s$', name) else name


def links_in(raw: Raw, field: FormField) -> Any:
    return [int(id) if links.is_number(id) else id for id in raw]


def names_in(raw: Raw, field: FormField) -> Any:
    """Tags by ID where their names are known: a name of digits would be taken for an ID."""
    known = {option.name: option.id for option in field.options}
    line = " ".join(raw.split("\n")) if isinstance(raw, str) else ""
    try:
        names = [name.strip() for row in csv.reader([line], skipinitialspace=True) for name in row]
    except csv.Error:  # longer than its limit, and than that of a name
        names = [line]
    return [int(known[name]) if name in known else name for name in names if name]


def flag_in(raw: Raw, field: FormField) -> Any:
    return bool(raw)


def as_typed(raw: Raw, field: FormField) -> Any:
    return raw


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
    "tree": Widget("tree", sorted_ids_of, lambda sent: sorted(as_list(sent), key=_by_number), links_in),
}
"""Widgets that metadata can name."""


def _by_number(id: str) -> tuple[int, str]:
    return len(id), id


def widget_of(field: Field[Any]) -> Widget:
    if name := field.metadata.get("widget"):
        return NAMED[name]
    return next(WIDGETS[base] for base in type(field).__mro__ if base in WIDGETS)
