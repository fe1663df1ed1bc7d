"""Content lines, which iCalendar and vCard are made of, as bytes."""

from __future__ import annotations

from icalendar import Component

MAX_OCTETS = 75
CONTINUATION = b"\r\n "


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
