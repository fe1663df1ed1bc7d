"""Content lines, which iCalendar (RFC 5545) and vCard (RFC 2426) are made of."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime

from schemas.formats.format import printable

MAX_OCTETS = 75
CONTINUATION = b"\r\n "
ESCAPED = str.maketrans({"\\": "\\\\", ";": "\\;", ",": "\\,"} | dict.fromkeys("\n\x85\u2028\u2029", "\\n"))
"""Also of other line breaks: some programs would take them for the end of the line."""


def text(value: str) -> str:
    """A text as the value of a line."""
    return printable(value).replace("\r\n", "\n").replace("\r", "\n").translate(ESCAPED)


def quoted(value: str) -> str:
    """A text as the value of a parameter, which cannot contain quotation marks or line breaks."""
    return '"' + " ".join(printable(value).replace('"', "'").split()) + '"'


def coordinates(latitude: float, longitude: float) -> str:
    """A place, in six decimal places as both formats say."""
    return f"{latitude:.6f};{longitude:.6f}"


def compact(moment: date | datetime) -> str:
    """A day or time without separators: 20270601T190000."""
    return moment.isoformat().replace("-", "").replace(":", "")


def component(name: str, lines: Iterable[str]) -> bytes:
    return b"".join(map(fold, (f"BEGIN:{name}", *lines, f"END:{name}")))


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
