"""The columns of CSV files, named as in the importer of the reference service and in CSV feeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas import EVENT, ORGANIZER, VENUE
from schemas.formats.csv_table import COLUMNS, FORMULA_STARTS, FieldColumn, image
from schemas.kind import Document, Kind

Row = Mapping[str, str]
"""The cells of a row by the names of their columns."""

NOT_FIELDS = {"id", "url", "cost"}
FIELDS: dict[str, dict[str, str]] = {
    name: {
        title: column.field if isinstance(column, FieldColumn) else "image"
        for title, column in columns.items()
        if column is image or (isinstance(column, FieldColumn) and column.field not in NOT_FIELDS)
    }
    for name, columns in COLUMNS.items()
}
"""Name of a kind -> column -> field, for cells that are taken as they are."""
CLOCKS = ("Event Start Date", "Event Start Time", "Event End Date", "Event End Time")
LINKS = {
    "Event Venue Name": ("venue", "venue"),
    "Event Organizer Name": ("organizer", "organizer"),
    "Event Category": ("categories", ""),
    "Event Tags": ("tags", ""),
}
"""Column of names, separated by commas, or of one venue -> field, and the field of the linked record that has
the name."""
COST, SYMBOL, POSITION = "Event Cost", "Event Currency Symbol", "Event Currency Position"
OTHER_NAMES = {
    "Event Time Zone": "Timezone",
    "Hide Event From Event Listings": "Hide From Event Listings",
    "Event Sticky in Month View": "Sticky in Month View",
    "Event Organizer Name(s) or ID(s)": "Event Organizer Name",
    "Event Organizers": "Event Organizer Name",
}
"""What the reference service's importer calls some columns, unlike its example files."""
KNOWN = {name.casefold(): name for columns in COLUMNS.values() for name in columns} | {
    other.casefold(): name for other, name in OTHER_NAMES.items()
}
KINDS = (EVENT, VENUE, ORGANIZER)


def name_column(kind: Kind) -> str:
    """The column that every file of this kind has."""
    return next(column for column, field in FIELDS[kind.name].items() if field == kind.name_field)


def kind_of(columns: Row | list[str]) -> Kind | None:
    """The kind whose records a file with these columns contains."""
    return next((kind for kind in KINDS if name_column(kind) in columns), None)


def plain_values(kind: Kind, row: Row) -> Document:
    """The fields of the cells that are taken as they are."""
    return {field: uncell(row[column]) for column, field in FIELDS[kind.name].items() if column in row}


def links_of(row: Row) -> Document:
    """The linked records by their names."""
    found: dict[str, Any] = {}
    for column, (field, name) in LINKS.items():
        if column in row:
            cell = uncell(row[column])
            parts = [cell] if field == VENUE.name else cell.split(",")  # names of places often contain commas
            names = [part.strip() for part in parts if part.strip()]
            found[field] = [{name: one} for one in names] if name else names
    return found


def cost_of(row: Row) -> Document:
    """The cost, with the currency symbol of the row if the cost is a bare number."""
    if COST not in row:
        return {}
    cost, symbol = uncell(row[COST]).strip(), row.get(SYMBOL, "").strip()
    if symbol and cost and not cost.strip("0123456789., -–"):
        is_after = row.get(POSITION, "").strip().lower() in ("suffix", "postfix")
        cost = f"{cost}{symbol}" if is_after else f"{symbol}{cost}"
    return {"cost": cost}


def uncell(text: str) -> str:
    """A cell without the apostrophe that keeps spreadsheets from reading it as a formula."""
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULA_STARTS) else text
