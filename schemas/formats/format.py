"""`Format` defines a format as data: a feed is its beginning, its items and its end."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from schemas.kind import Document, Kind, RenderContext
from schemas.values.text_normalization import without_markup

BLOCK_ENDS = re.compile(r"<br\s*/?>|</(?:p|div|li|h[1-6]|tr|blockquote)>", re.IGNORECASE)
# Beginning where the white space does, so that long white space takes linear time.
BLANK_LINES = re.compile(r"(?<![^\S\n])[^\S\n]*+\n\s*")
UNPRINTABLE = re.compile(r"[^\t\n\r\x20-\x7e\x80-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that neither XML nor iCalendar can contain."""
MAX_ZONE_YEARS = 50
"""Years for which a feed defines a time zone."""
Period = tuple[datetime, datetime]


@dataclass(frozen=True)
class Feed:
    """One list or record to be written: what all its items share."""

    kind: Kind
    context: RenderContext
    instance: UUID
    """The identity of this calendar, which no change of its address affects."""
    url: str
    updated: datetime
    zones: dict[str, Period] = field(default_factory=dict)
    """The time zones of its events, each with a period that contains them; those of a long feed are added
    while it is written."""

    def __post_init__(self) -> None:
        self.zones.update({name: shortened(period, self.updated) for name, period in self.zones.items()})

    @property
    def title(self) -> str:
        return f"{self.kind.plural.capitalize()} · {self.context.site.title or self.context.site.host}"

    @property
    def id(self) -> UUID:
        """An identifier of this feed, different for each filter; no change of its address affects it."""
        return uuid5(self.instance, self.url.removeprefix(self.context.site.api))

    def uid(self, record: Mapping[str, Any]) -> UUID:
        """An identifier of a record that never changes, different from those of all other calendars."""
        return uuid5(self.instance, f"{self.kind.plural}/{record['_id']}")

    def shown(self, record: Mapping[str, Any]) -> Document:
        """The JSON representation of a record."""
        return self.kind.represent(self.kind, record, self.context)


@dataclass(frozen=True)
class Format:
    """One format. Items are written one by one, so that a list of any length needs little memory."""

    ending: str
    media_type: str
    kinds: tuple[str, ...]
    """Names of the kinds that it can represent."""
    begin: Callable[[Feed], bytes]
    item: Callable[[Feed, Mapping[str, Any]], bytes]
    before: Callable[[Feed, Mapping[str, Any]], bytes] = lambda feed, record: b""
    """What comes before an item of a long feed, whose other items were not looked at when it began."""
    end: bytes = b""
    separator: bytes = b""
    with_cancelled: bool = False
    """Whether events that were moved to the trash lately are included, as cancelled."""

    def whole(self, feed: Feed, records: list[Document]) -> bytes:
        """A complete document."""
        items = self.separator.join(self.item(feed, record) for record in records)
        return self.begin(feed) + items + self.end


def shortened(period: Period, updated: datetime) -> Period:
    """The period for which a feed defines a zone: of a very long one only the years around the last change,
    since every day of it is looked at. Other times are written in UTC."""
    first, last = period
    if last.year - first.year <= MAX_ZONE_YEARS:
        return period
    begin, end = updated.year - MAX_ZONE_YEARS // 2, updated.year + MAX_ZONE_YEARS // 2
    return max(first, datetime(begin, 1, 1)), min(last, datetime(end, 12, 31))


def venues_of(shown: Mapping[str, Any]) -> list[Document]:
    """The venues of an event's representation, which is a single one or a list."""
    found = shown["venue"]
    return [found] if isinstance(found, dict) else found


def address_of(venue: Mapping[str, Any]) -> str:
    """The address of a venue on one line."""
    town = " ".join(filter(None, (venue["zip"], venue["city"])))
    parts = (venue["venue"], venue["address"], town, venue["stateprovince"], venue["country"])
    return ", ".join(filter(None, parts))


def plain_text(html: str) -> str:
    """The text of an HTML string, with a line for each paragraph."""
    return BLANK_LINES.sub("\n", without_markup(BLOCK_ENDS.sub("\n", html))).strip()


def printable(text: str) -> str:
    return UNPRINTABLE.sub("", text)
