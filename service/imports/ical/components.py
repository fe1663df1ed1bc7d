"""Splits the text of an iCalendar file into its components, so that one that is wrong spoils no others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from service.imports.item import SourceError

LINE_END = re.compile(r"\r\n|\r|\n")
CALENDAR = "VCALENDAR"
TOP = {CALENDAR, "VEVENT", "VTODO", "VJOURNAL", "VFREEBUSY", "VTIMEZONE"}
"""Components that are never inside others than the calendar."""
CALENDAR_ZONE = "X-WR-TIMEZONE"
"""A property of the calendar, not a component: the zone of times without one."""


class Component(NamedTuple):
    """A component of a calendar: its name, the line on which it begins, its text, and why it cannot be read,
    if it cannot."""

    name: str
    line: int
    text: str
    problem: str = ""


def components(text: str, source: str) -> Iterator[Component]:
    """The components directly inside a calendar; a file may contain several calendars."""
    splitter = Splitter()
    for number, line in enumerate(LINE_END.split(text.lstrip(" \t")), 1):
        word, _, value = line.rstrip().partition(":")  # a line that begins with a space continues another
        match word.upper():
            case "BEGIN":
                yield from splitter.begin(number, line, value.strip().upper())
            case "END":
                yield from splitter.end(number, line, value.strip().upper())
            case _:
                yield from splitter.property(number, line, word.upper(), value.strip())
    if splitter.names:
        raise SourceError(f"{source} is incomplete: END:{splitter.names[0]} is missing")


class Splitter:
    """Collects the lines of a component until it ends. `names` are those of components that have begun."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._line, self._kept, self._problem = 0, list[str](), ""

    def begin(self, number: int, line: str, name: str) -> Iterator[Component]:
        if name in TOP and len(self.names) > 1:
            self._problem = f"END:{self.names[-1]} is missing"
            yield self._ended()
        if name == CALENDAR:
            self.names = []
        self.names.append(name)
        if len(self.names) == 2:
            self._line, self._kept, self._problem = number, [], ""
        self._kept.append(line)

    def end(self, number: int, line: str, name: str) -> Iterator[Component]:
        self._kept.append(line)
        if name not in self.names:
            self._problem = f"{line.strip()[:80]} on line {number} ends nothing that has begun"
            if len(self.names) < 2:
                yield Component(name, number, "", self._problem)
            return
        depth = self.names.index(name)
        if self.names[-1] != name:
            self._problem = f"END:{self.names[-1]} is missing"
        if depth < 2 and len(self.names) > 1:
            yield self._ended()
        del self.names[depth:]

    def property(self, number: int, line: str, name: str, value: str) -> Iterator[Component]:
        if len(self.names) > 1:
            self._kept.append(line)
        elif name == CALENDAR_ZONE:
            yield Component(CALENDAR_ZONE, number, value)

    def _ended(self) -> Component:
        name = self.names[1]
        del self.names[1:]
        return Component(name, self._line, "\r\n".join((*self._kept, "")), self._problem)
