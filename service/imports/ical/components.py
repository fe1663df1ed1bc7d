"""Splits the text of an iCalendar file into its components, so that one that is wrong spoils no others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from service.imports.item import SourceError

LINE_END = re.compile(r"\r\n|\r|\n")
CALENDAR_ZONE = "X-WR-TIMEZONE"
"""A property of the calendar, not a component: the zone of times without one."""


class Component(NamedTuple):
    """A component of a calendar: its name, the line on which it begins, and its text."""

    name: str
    line: int
    text: str


def components(text: str, source: str) -> Iterator[Component]:
    """The components directly inside a calendar; a file may contain several calendars."""
    names: list[str] = []
    begin, kept = 0, list[str]()
    for number, line in enumerate(LINE_END.split(text), 1):
        word, _, value = line.strip().partition(":")
        if word.upper() == "BEGIN":
            names.append(value.strip().upper())
            if len(names) == 2:
                begin, kept = number, []
        if len(names) >= 2:
            kept.append(line)
        elif word.upper() == CALENDAR_ZONE:
            yield Component(CALENDAR_ZONE, number, value.strip())
        if word.upper() == "END":
            if not names or names.pop() != value.strip().upper():
                raise SourceError(f"{source}, line {number}: {line.strip()[:80]} ends nothing that has begun")
            if len(names) == 1:
                yield Component(value.strip().upper(), begin, "\r\n".join((*kept, "")))
    if names:
        raise SourceError(f"{source} is incomplete: END:{names[0]} is missing")
