"""Checks the values of the options of `kalends import`."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from datetime import date, datetime

from service.commands.parser import nearest
from service.imports.csv.columns import KNOWN

EXAMPLE = date(2027, 6, 30)


def day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"must be a date such as 2027-06-30, not {text!r}") from None


def date_format(text: str) -> str:
    """A form of dates in which a date is written and read again unchanged; the default is none."""
    try:
        is_complete = datetime.strptime(EXAMPLE.strftime(text), text).date() == EXAMPLE
    except (ValueError, re.error):  # of regular expressions if a part is there twice
        is_complete = False
    if text and not is_complete:
        raise ArgumentTypeError(
            f"must be a format with day, month and year, each once, such as %d.%m.%Y, not {text!r}"
        )
    return text


def column_mapping(text: str) -> tuple[str, str]:
    """The name of a column in the file, and the known column that it is."""
    name, _, column = text.rpartition("=")
    if not name.strip() or column.strip().casefold() not in KNOWN:
        raise ArgumentTypeError(
            f"must be NAME=COLUMN with a known column such as Event Name, not {text!r}"
            f"{nearest(column.strip(), KNOWN.values())}"
        )
    return name.strip(), column.strip()
