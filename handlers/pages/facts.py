"""What the page of a record says about it, from the schemas of its kind: labels, order and links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from handlers.pages.context import PageContext
from handlers.pages.maps import Place, VenueMap
from schemas.kind import Kind, reader_of
from schemas.kinds.event import EVENT
from schemas.kinds.post import PostInput
from schemas.kinds.term import TermInput
from schemas.text_fields import MailAddress, WebAddress

SHARED = frozenset((*PostInput().fields, *TermInput().fields))
"""Fields that are shown elsewhere on a page, or not at all."""
FIELD_OF_KIND = {name: field for field, name in EVENT.links.items()}
"""Kind -> the field in which events link to it."""
COUNTRY_DEGREES = 13.0
"""Height of the map of a single place: enough to show coasts around it."""


class Fact(NamedTuple):
    """A line about a record; with a link if it is an address."""

    label: str
    text: str
    link: str


def facts_of(kind: Kind, shown: Mapping[str, Any], page: PageContext) -> list[Fact]:
    """The lines about a record that have a value."""
    fields = reader_of(kind.body_schema).fields
    lines = []
    for names in lines_of(kind):
        if values := [str(shown[name]) for name in names if shown.get(name)]:
            first, text = fields[names[0]], ", ".join(values)
            label = page.text(first.metadata.get("label") or first.metadata["description"])
            lines.append(Fact(label[:1].upper() + label[1:], text, link_of(first, text)))
    return lines


def lines_of(kind: Kind) -> tuple[tuple[str, ...], ...]:
    """The fields of each line: those that the kind names, or all texts that only this kind has."""
    if kind.facts:
        return kind.facts
    shown = kind.response_schema().fields.keys() - SHARED - {kind.name_field}
    return tuple((name,) for name in reader_of(kind.body_schema).fields if name in shown)


def link_of(field: Any, text: str) -> str:
    if isinstance(field, WebAddress):
        return text
    # What follows a `?` in an address would be read as parameters, such as further recipients.
    return f"mailto:{quote(text, safe='@+')}" if isinstance(field, MailAddress) else ""


def map_of(shown: Mapping[str, Any], name: str) -> VenueMap | None:
    """The map of a record, if it has coordinates and may be shown on one."""
    if shown.get("geo_lat") is None or not shown.get("show_map", True):
        return None
    place = Place(name, shown["geo_lat"], shown["geo_lng"])
    return VenueMap([place], 320, 200, COUNTRY_DEGREES)


def filter_of(kind: Kind, shown: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The filter that finds the events of a record; none if events do not link to its kind."""
    if (field := FIELD_OF_KIND.get(kind.name)) is None:
        return []
    # A slug is nicer to read, but one of digits could be the ID of another term.
    by_slug = not kind.is_post and not shown["slug"].isdigit()
    return [(field, shown["slug"] if by_slug else str(shown["id"]))]
