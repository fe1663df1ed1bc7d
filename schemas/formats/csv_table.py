"""CSV (RFC 4180) for spreadsheets, with the column names that the reference service imports."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from schemas.formats.format import Feed, Format, venues_of
from schemas.kind import Document

BOM = "\ufeff"
"""Without it spreadsheets read UTF-8 as another encoding."""
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
Column = Callable[[Document], Any]


@dataclass(frozen=True)
class FieldColumn:
    """A column with one field of the representation, which can also be imported."""

    field: str

    def __call__(self, shown: Document) -> Any:
        return shown[self.field]


field = FieldColumn


def names(field: str, name: str) -> Column:
    """The names of linked records, separated by commas."""
    return lambda shown: ", ".join(one[name] for one in shown[field])


def image(shown: Document) -> str:
    return (shown["image"] or {}).get("url") or ""


EVENT: dict[str, Column] = {
    "Event ID": field("id"),
    "Event Name": field("title"),
    "Event Description": field("description"),
    "Event Excerpt": field("excerpt"),
    "Event Venue Name": lambda shown: ", ".join(one["venue"] for one in venues_of(shown)),
    "Event Organizer Name": names("organizer", "organizer"),
    "Event Start Date": lambda shown: shown["start_date"][:10],
    "Event Start Time": lambda shown: shown["start_date"][11:],
    "Event End Date": lambda shown: shown["end_date"][:10],
    "Event End Time": lambda shown: shown["end_date"][11:],
    "All Day Event": field("all_day"),
    "Timezone": field("timezone"),
    "Hide From Event Listings": field("hide_from_listings"),
    "Sticky in Month View": field("sticky"),
    "Feature Event": field("featured"),
    "Event Category": names("categories", "name"),
    "Event Tags": names("tags", "name"),
    "Event Cost": field("cost"),
    "Event Currency Symbol": lambda shown: shown["cost_details"]["currency_symbol"],
    "Event Currency Position": lambda shown: shown["cost_details"]["currency_position"],
    "Event Featured Image": image,
    "Event Website": field("website"),
    "Event Show Map Link": field("show_map_link"),
    "Event Show Map": field("show_map"),
    "Event Status": field("status"),
    "Event URL": field("url"),
}
VENUE: dict[str, Column] = {
    "Venue ID": field("id"),
    "Venue Name": field("venue"),
    "Venue Country": field("country"),
    "Venue Address": field("address"),
    "Venue City": field("city"),
    "Venue State/Province": field("stateprovince"),
    "Venue Zip": field("zip"),
    "Venue Phone": field("phone"),
    "Venue Website": field("website"),
    "Venue Latitude": field("geo_lat"),
    "Venue Longitude": field("geo_lng"),
    "Venue Description": field("description"),
    "Venue Featured Image": image,
    "Venue Show Map Link": field("show_map_link"),
    "Venue Show Map": field("show_map"),
    "Venue URL": field("url"),
}
ORGANIZER: dict[str, Column] = {
    "Organizer ID": field("id"),
    "Organizer Name": field("organizer"),
    "Organizer Email": field("email"),
    "Organizer Website": field("website"),
    "Organizer Phone": field("phone"),
    "Organizer Description": field("description"),
    "Organizer Featured Image": image,
    "Organizer URL": field("url"),
}
COLUMNS = {"event": EVENT, "venue": VENUE, "organizer": ORGANIZER}


def cell(value: Any) -> Any:
    """A value as spreadsheets show it; text that they would run as a formula begins with an apostrophe."""
    if isinstance(value, bool):
        return str(value).upper()
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value


def row(values: Iterable[Any]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\r\n").writerow(map(cell, values))
    return buffer.getvalue().encode()


def begin(feed: Feed) -> bytes:
    return BOM.encode() + row(COLUMNS[feed.kind.name])


def item(feed: Feed, record: Mapping[str, Any]) -> bytes:
    shown = feed.shown(record)
    return row(column(shown) for column in COLUMNS[feed.kind.name].values())


CSV = Format("csv", "text/csv", tuple(COLUMNS), begin, item)
