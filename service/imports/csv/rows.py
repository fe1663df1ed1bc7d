"""Splits the text of a CSV file into rows, so that one that is wrong spoils no others."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

DELIMITERS = ",;\t"
SEPARATOR = re.compile(r"\"?sep=(.)\"?\s*", re.IGNORECASE)
"""A first line with which Excel is told the delimiter."""
MAX_CELL = 1_000_000
NO_LIMIT = 2**31 - 1
"""Python has one limit of cells for the whole process. Cells that are too large are refused here, with their
row; the reader would fail in the middle of it."""


class CsvRow(NamedTuple):
    """The cells of a row, the number of its first line, and why it cannot be read, if it cannot."""

    line: int
    cells: list[str]
    problem: str = ""


def csv_lines(text: str) -> list[str]:
    """The lines with their ends, which are those of Windows, Unix or old Macintosh programs."""
    return list(io.StringIO(text, newline=""))


def csv_rows(lines: Sequence[str]) -> Iterator[CsvRow]:
    """The rows; they are read on at the line after the first one of a row that is not valid."""
    first_line = lines[0] if lines else ""
    separator = SEPARATOR.fullmatch(first_line)
    delimiter = separator[1] if separator else max(DELIMITERS, key=first_line.count)
    csv.field_size_limit(NO_LIMIT)
    begin = 1 if separator else 0
    while begin < len(lines):
        start = begin
        remaining = map(lines.__getitem__, range(start, len(lines)))
        reader = csv.reader(remaining, delimiter=delimiter, strict=True)
        try:
            for cells in reader:
                yield _checked(CsvRow(begin + 1, cells))
                begin = start + reader.line_num
        except csv.Error as error:
            yield CsvRow(begin + 1, [], f"not valid CSV: {error}")
            begin += 1


def _checked(row: CsvRow) -> CsvRow:
    if any(len(cell) > MAX_CELL for cell in row.cells):
        return row._replace(problem=f"a cell has more than {MAX_CELL:,} characters")
    if any("\0" in cell for cell in row.cells):
        return row._replace(problem="a cell contains a NUL character")
    return row
