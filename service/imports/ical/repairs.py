"""Repairs what calendar programs often get wrong in the text of an event."""

from __future__ import annotations

import re
from collections.abc import Iterator
from quopri import decodestring

EMPTY_TIME = re.compile(
    r"^(?:DTEND|DURATION|RRULE|RDATE|EXDATE|RECURRENCE-ID)(?:;[^:\r]*)?:[ ]*\r\n(?![ \t])", re.I | re.M
)
RULE = re.compile(r"^RRULE[^:\r]*:.*$", re.I | re.M)
UNQUOTED_ZONE = re.compile(r"(;TZID=)(\([^\"\r]{0,200}):(?=\d)", re.I)
"""Such as (UTC+01:00) Berlin, with a colon that would end the parameters."""
QUOTED_PRINTABLE = re.compile(
    r"^([A-Z-]+)((?:;[^:\r]*)?;ENCODING=QUOTED-PRINTABLE[^:\r]*):((?:.*=\r\n)*.*)\r$", re.I | re.M
)
"""Texts of vCalendar 1.0, before iCalendar."""
CHARSET = re.compile(r";CHARSET=\"?([\w-]+)", re.I)
PROPERTY = re.compile(r"[\w-]+(?:;|:(?!//))")
TEXT = re.compile(r"(?:DESCRIPTION|SUMMARY|LOCATION|COMMENT|CONTACT|X-ALT-DESC)[;:]", re.I)


def repaired(text: str) -> str:
    """The text of a component in a form that the library understands."""
    text = QUOTED_PRINTABLE.sub(_plain, text)
    text = EMPTY_TIME.sub("", text)
    text = RULE.sub(lambda rule: rule[0].replace(" ", ""), text)
    text = UNQUOTED_ZONE.sub(r'\1"\2":', text)
    return "\r\n".join(_with_stray_lines(text.split("\r\n")))


def _with_stray_lines(lines: list[str]) -> Iterator[str]:
    """The lines; one that is no property continues a text that has line breaks of its own."""
    is_text = False
    for line in lines:
        if PROPERTY.match(line):
            is_text = TEXT.match(line) is not None
        elif is_text and line[:1].strip():
            line = f" \\n{line}"  # noqa: PLW2901 - the line is repaired
        yield line


def _plain(found: re.Match[str]) -> str:
    """A property with its text as iCalendar would have it."""
    name, parameters, value = found.groups()
    charset = CHARSET.search(parameters)
    try:
        decoded = decodestring(value.encode()).decode(charset[1] if charset else "utf-8", "replace")
    except LookupError:  # of an unknown encoding
        return found[0]
    escaped = re.sub(r"([\\;,])", r"\\\1", decoded)
    return f"{name}:" + r"\n".join(escaped.splitlines()) + "\r"
