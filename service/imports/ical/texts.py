"""The texts of an event in an iCalendar file."""

from __future__ import annotations

import re
from html import escape, unescape

from icalendar import Event
from icalendar.parser.property import unescape_backslash

from service.imports.ical.series import many

MARKUP = re.compile(r"</?[a-z][a-z0-9]*(\s[^<>]*)?/?>", re.IGNORECASE)
"""A tag, but not an address in angle brackets."""
REFERENCE = re.compile(r"&(?:#\d+|#x[\da-f]+|[a-z][a-z\d]*);", re.IGNORECASE)


def text_of(event: Event, name: str) -> str:
    """A text; the first one if there are several."""
    return next((plain(str(value)).strip() for value in many(event.get(name))), "")


def plain(text: str) -> str:
    """A text without the character references of HTML that some programs leave in it."""
    return REFERENCE.sub(lambda found: unescape(found[0]), text)


def description_of(event: Event) -> str | None:
    """The description as HTML."""
    for value in many(event.get("X-ALT-DESC")):
        if value.params.get("FMTTYPE", "").lower() == "text/html":
            html = str(unescape_backslash(str(value)))
            return html.replace("\\n", "\n")  # some programs escape twice
    text = next((str(value).strip() for value in many(event.get("DESCRIPTION"))), "")
    is_html = MARKUP.search(text) is not None
    return (text if is_html else escape(plain(text), quote=False).replace("\n", "<br>\n")) or None
