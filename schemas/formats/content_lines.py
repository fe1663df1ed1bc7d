"""Content lines, which iCalendar and vCard are made of: texts for them, and their bytes."""

from __future__ import annotations

import re

from icalendar import Component, vUri

from schemas.formats.format import printable

MAX_OCTETS = 75
CONTINUATION = b"\r\n "
LINE_BREAKS = re.compile("\r\n|[\r\x85\u2028\u2029]")
"""Some programs would take these for the end of the line."""


def text(value: str) -> str:
    """A text that can be the value of a property."""
    return LINE_BREAKS.sub("\n", printable(value))


def coordinates(latitude: float, longitude: float) -> vUri:
    """A place, in six decimal places as both formats say."""
    return vUri(f"{latitude:.6f};{longitude:.6f}")


def to_bytes(component: Component) -> bytes:
    """A component as it is sent. The library's own folding looks at each character, which takes two thirds of
    the time that a feed needs."""
    return b"".join(fold(line) for line in component.content_lines(sorted=False) if line)


def fold(line: str) -> bytes:
    """A line, divided between characters into lines of at most 75 octets."""
    octets, parts, at, room = line.encode(), [], 0, MAX_OCTETS
    while len(octets) - at > room:
        cut = at + room
        while octets[cut] & 0b1100_0000 == 0b1000_0000:  # within a character
            cut -= 1
        parts.append(octets[at:cut])
        at, room = cut, MAX_OCTETS - 1
    return CONTINUATION.join((*parts, octets[at:])) + b"\r\n"
