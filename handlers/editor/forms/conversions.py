"""Converts between values of the API, what inputs hold, and what browsers send."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from schemas import links

if TYPE_CHECKING:
    from handlers.editor.forms.fields import FormField

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
    return sorted(ids_of(value), key=by_number)


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
    line = " ".join(raw.split("\n")) if isinstance(raw, str) else ""
    try:
        names = [name.strip() for row in csv.reader([line], skipinitialspace=True) for name in row]
    except csv.Error:  # longer than its limit, and than that of a name
        names = [line]
    ids = _ids_by_name(field)
    return [_next_id(ids[name]) if name in ids else name for name in names if name]


def _ids_by_name(field: FormField) -> dict[str, list[str]]:
    """The tags that each name stands for. Several may have the same name: those that are linked win, so that
    a name that stays in the input keeps its tag."""
    ids: dict[str, list[str]] = {}
    for option in field.linked:
        ids.setdefault(option.name, []).append(option.id)
    for option in field.options:
        ids.setdefault(option.name, [option.id])
    return ids


def _next_id(ids: list[str]) -> int:
    """Each equal name stands for the next tag; the last one may be repeated."""
    return int(ids.pop(0) if len(ids) > 1 else ids[0])


def flag_in(raw: Raw, field: FormField) -> Any:
    return bool(raw)


def as_typed(raw: Raw, field: FormField) -> Any:
    return raw


def by_number(id: str) -> tuple[int, str]:
    """Sorts IDs; what is typed may be no number."""
    return len(id), id


def as_sorted_list(sent: Any) -> list[str]:
    return sorted(as_list(sent), key=by_number)
