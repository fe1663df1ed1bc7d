"""Reads CSV files, with the columns of the reference service's importer or with others mapped to them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime

from schemas import EVENT
from schemas.kind import Document, Kind
from schemas.values.dates import is_fixed
from service.imports.csv.columns import (
    CLOCKS,
    KINDS,
    KNOWN,
    Row,
    cost_of,
    kind_of,
    links_of,
    name_column,
    plain_values,
)
from service.imports.csv.rows import CsvRow, csv_lines, csv_rows
from service.imports.item import Entry, Item, OccurrenceKeys, Refusal, SourceError, key_of

TIME_FORMATS = ("%H:%M:%S", "%H:%M", "%I:%M %p", "%I:%M%p", "%I:%M:%S %p", "%I %p", "%I%p")
YES = {"1", "true", "yes", "on"}


class CsvSource:
    """The rows of a CSV file; its columns say of which kind they are."""

    position = 0

    def __init__(self, name: str, text: str, mapping: Mapping[str, str], date_format: str) -> None:
        self.name, self._date_format = name, date_format
        lines = csv_lines(text)
        self.size = len(lines)
        self._rows = csv_rows(lines)
        header = next(self._rows, CsvRow(1, []))
        if header.problem:
            raise SourceError(f"{name}, line {header.line}: {header.problem}")
        self._columns = self._mapped(header.cells, mapping)
        ignored = [name for name in self._columns if name and name not in KNOWN.values()]
        self.notices = [f"Columns that are not imported: {', '.join(ignored)}"] if ignored else []
        kind = kind_of(self._columns)
        if kind is None:
            names = ", ".join(map(name_column, KINDS))
            raise SourceError(
                f"{name} is not NDJSON or iCalendar, nor CSV with one of the columns {names}; "
                'columns with other names can be mapped: --map "Titel=Event Name"'
            )
        self._kind: Kind = kind

    def _mapped(self, header: list[str], mapping: Mapping[str, str]) -> list[str]:
        """The names of the columns, without regard to case."""
        own = {name.strip().casefold(): KNOWN[known.casefold()] for name, known in mapping.items()}
        known = KNOWN | own
        if missing := [
            name
            for name in mapping
            if name.strip().casefold() not in map(str.casefold, map(str.strip, header))
        ]:
            raise SourceError(
                f"{self.name} has no column {missing[0]!r} for --map; it has {', '.join(header)}"
            )
        return [known.get(name.strip().casefold(), name.strip()) for name in header]

    async def items(self) -> AsyncIterator[Entry]:
        keys = OccurrenceKeys()
        for row in self._rows:
            self.position = row.line
            if row.problem or any(row.cells):
                yield self._entry(row, keys)

    def _entry(self, row: CsvRow, keys: OccurrenceKeys) -> Entry:
        where = f"line {row.line}"
        try:
            cells = self._cells(row)
            return Item(self._kind, keys.number(self._key(cells)), where, self._values(cells))
        except ValueError as error:
            return Refusal(self._kind, where, str(error))

    def _cells(self, row: CsvRow) -> Row:
        """The cells by the names of their columns; raises ValueError."""
        if row.problem:
            raise ValueError(row.problem)
        if any(row.cells[len(self._columns) :]):
            raise ValueError(f"has {len(row.cells)} cells, but there are {len(self._columns)} columns")
        return {name: cell.strip() for name, cell in zip(self._columns, row.cells, strict=False)}

    def _key(self, row: Row) -> bytes:
        """A row is known by the address of its page, else by the name and the start."""
        url = row.get(f"{self._kind.name.capitalize()} URL")
        content = [row.get(name, "") for name in (name_column(self._kind), *CLOCKS[:2])]
        return key_of("csv", self._kind.plural, *([url] if url else content))

    def _values(self, row: Row) -> Document:
        values = plain_values(self._kind, row)
        return values | links_of(row) | cost_of(row) | self._times(row) if self._kind is EVENT else values

    def _times(self, row: Row) -> Document:
        """Start and end; without an end, an event ends when it starts."""
        start_day, start_time, end_day, end_time = (row.get(name, "") for name in CLOCKS)
        is_all_day = row.get("All Day Event", "").lower() in YES
        days = [
            self._day(name, day) for name, day in ((CLOCKS[0], start_day), (CLOCKS[2], end_day or start_day))
        ]
        times = (
            ["", ""]
            if is_all_day
            else [clock(CLOCKS[1], start_time), clock(CLOCKS[3], end_time or start_time)]
        )
        start, end = (f"{day} {time}".strip() for day, time in zip(days, times, strict=True))
        return {"start_date": start or None, "end_date": end or None}

    def _day(self, column: str, text: str) -> str:
        if not text or (not self._date_format and is_fixed(text)):
            return text
        if not self._date_format:
            raise ValueError(
                f"{column}: {text!r} is not a date such as 2027-06-01; "
                "name the form of the dates, as with --date-format %d.%m.%Y"
            )
        try:
            return datetime.strptime(text, self._date_format).date().isoformat()
        except ValueError:
            raise ValueError(f"{column}: {text!r} is not in the form {self._date_format}") from None


def clock(column: str, text: str) -> str:
    """A time of day, with or without seconds, also with AM or PM."""
    for form in TIME_FORMATS if text else ():
        try:
            return datetime.strptime(text.upper().replace(".", ""), form).time().isoformat()
        except ValueError:
            continue
    if text:
        raise ValueError(f"{column}: {text!r} is not a time such as 19:30 or 7:30 PM")
    return ""
