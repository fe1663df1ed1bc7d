"""Removes unsafe HTML from text before it is stored."""

from __future__ import annotations

import html
import re
from collections import Counter

import nh3

from schemas.language import Text

OPENS_TAG = r"<(?=[a-zA-Z/!?])"
"""What an HTML parser reads as the start of a tag, comment or declaration; `<3` is none of these."""
TAG = re.compile(OPENS_TAG + r"[^>]*>")
UNCLOSED = re.compile(OPENS_TAG)
NAMED_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
WHOLE_TAG = r"""(?:=\s*+"[^"]*+"|=\s*+'[^']*+'|(?!=\s*+["'])[^<>])*+>"""
"""The rest of a tag whose quotes are closed, up to the next `<` outside of them."""
OPENING = re.compile(rf"(?P<comment><!--)|(?P<tag>{OPENS_TAG}{WHOLE_TAG})|{OPENS_TAG}")
# Beginning where the white space does, so that long white space takes linear time.
TAG_END = re.compile(r"(?<!\s)\s*+/?>")
MAX_DEPTH = 100
UNNESTED = {
    "area", "br", "caption", "col", "colgroup", "dd", "dt", "hr", "img", "input", "li", "optgroup", "option",
    "p", "rp", "rt", "source", "tbody", "td", "tfoot", "th", "thead", "tr", "track", "wbr",
}  # fmt: skip
"""Void elements, and elements that the next one of their kind closes implicitly."""

MEDIA = {"src", "controls", "loop", "muted", "preload"}
ATTRIBUTES: dict[str, set[str]] = nh3.ALLOWED_ATTRIBUTES | {
    "*": {"class", "dir", "lang", "role", "style", "title"},
    "a": {"href", "hreflang", "rel", "target", "download"},
    "audio": MEDIA,
    "details": {"open"},
    "font": {"color", "face", "size"},
    "ol": {"start", "type", "reversed"},
    "source": {"src", "media", "type"},
    "time": {"datetime"},
    "track": {"src", "kind", "label", "srclang", "default"},
    "video": MEDIA | {"poster", "width", "height", "playsinline"},
}
TAGS: set[str] = (nh3.ALLOWED_TAGS | ATTRIBUTES.keys() | {"address", "big", "main", "section"}) - {
    "*",
    "map",
    "area",
}
"""What WordPress allows authors to use, except ids and forms, which can interfere with the page."""
SPACE = {
    f"{box}{side}" for box in ("margin", "padding") for side in ("", "-top", "-right", "-bottom", "-left")
}
STYLES = SPACE | {
    "background-color",
    "border",
    "color",
    "float",
    "font-size",
    "font-style",
    "font-weight",
    "height",
    "list-style-type",
    "max-width",
    "text-align",
    "text-decoration",
    "vertical-align",
    "width",
}
CLEANER = nh3.Cleaner(
    tags=TAGS,
    attributes=ATTRIBUTES,
    filter_style_properties=STYLES,
    url_schemes={"http", "https", "mailto", "tel"},
    link_rel=None,
)


def plain_text(text: str) -> str:
    """Removes tags and keeps the text between them. Repeated, since removing one tag can form another."""
    while (stripped := TAG.sub("", text)) != text:
        text = stripped
    # A space after the `<` of an unclosed tag keeps HTML parsers from reading it as a tag.
    return UNCLOSED.sub("< ", text)


def safe_html(text: str) -> str:
    """The text as written if it has only allowed tags, attributes, styles and URL schemes; otherwise the
    sanitized text."""
    if not UNCLOSED.search(text):
        return text
    if _depth(text) > MAX_DEPTH:
        raise ValueError(Text("The tags must not be nested more than {limit} levels deep.", limit=MAX_DEPTH))
    cleaned = CLEANER.clean(without_unclosed(text))
    # The cleaner escapes every `&`, `<` and `>` in text. If that is the only difference, return the text as
    # written, provided that each `<` in it that could open a tag belongs to an allowed tag.
    is_same = _read(cleaned) == _read(text) and cleaned.count("<") == len(UNCLOSED.findall(text))
    return text if is_same else cleaned


def without_unclosed(text: str) -> str:
    """The text with escaped tags and comments that are not closed: a parser would drop everything after
    them. A missing quote does that, too."""
    last_end = text.rfind("-->")

    def escape(found: re.Match[str]) -> str:
        is_closed = found["tag"] or (found["comment"] and found.end() <= last_end)
        return found[0] if is_closed else "&lt;" + found[0][1:]

    return OPENING.sub(escape, text)


def _read(markup: str) -> str:
    return TAG_END.sub(">", html.unescape(markup).replace("\r\n", "\n"))


def _depth(text: str) -> int:
    """An upper bound of the nesting depth: parsing time grows with the number of tags times their depth."""
    open_tags, depth, deepest = Counter[str](), 0, 0
    for closing, name in NAMED_TAG.findall(text.lower()):
        if name in UNNESTED or (closing and not open_tags[name]):
            continue
        change = -1 if closing else 1
        open_tags[name] += change
        depth += change
        deepest = max(deepest, depth)
    return deepest
