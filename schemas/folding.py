"""Text as `search` compares it: without case, accents and markup."""

from __future__ import annotations

import html
import re
import unicodedata

# A tag ends before the next `<` that is not in quotes: what is not closed by then is text. Nothing is tried
# twice, and a quote that one start opens closes another's, so all starts together take linear time.
TAG = re.compile(r"""<(?:(!--)|(/?[a-zA-Z][^\s/<>"']*+)(?:[^<>"']++|"[^"]*+"|'[^']*+')*+>)""")
INLINE = {
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i",
    "ins", "kbd", "mark", "nobr", "q", "rb", "rp", "rt", "rtc", "ruby", "s", "samp", "small", "span",
    "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
}  # fmt: skip
"""Elements that do not part the words around them."""
UNREAD = {
    "!--": re.compile("-->"),
    "script": re.compile("</script[^>]*>?", re.IGNORECASE),
    "style": re.compile("</style[^>]*>?", re.IGNORECASE),
}
"""Elements whose content nobody reads, and where each ends."""
TOKEN = re.compile(r"\w+|[^\w\s]")
PIECE = re.compile(r'"([^"]+)"|(\S+)')
LONGEST = 40
"""Longer parts of a search are looked up by their beginning, then compared with the text itself."""

SORTED = 100
"""Characters of a name that count when names are sorted."""


def fold(text: str) -> str:
    """Case and accents removed; white space becomes single blanks."""
    if text.isascii():
        return " ".join(text.lower().split())
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    plain = "".join(char for char in decomposed if not unicodedata.combining(char))
    return " ".join(plain.split())


def sort_key(name: str) -> str:
    """What lists sort names by."""
    return fold(name)[:SORTED]


def without_markup(text: str) -> str:
    """The words of an HTML text as a browser shows them. One pass: no nesting makes it slow."""
    if "<" not in text and "&" not in text:
        return text
    kept, at = [], 0
    while tag := TAG.search(text, at):
        name = (tag[1] or tag[2]).lower()
        joins = tag[1] or name.removeprefix("/") in INLINE
        kept += [html.unescape(text[at : tag.start()]), "" if joins else " "]
        at = tag.end()
        if closing := UNREAD.get(name):
            found = closing.search(text, at)
            at = found.end() if found else len(text)
    return "".join([*kept, html.unescape(text[at:])])


def tokens(folded: str) -> set[str]:
    """The distinct words of a folded text, and each mark as a word of its own.

    A very long word counts as overlapping stretches, so that each of its short parts lies within one.
    """
    words = set(folded.split())
    if joined := {word for word in words if not word.isalnum()}:
        words = (words - joined).union(*map(TOKEN.findall, joined))
    if max(map(len, words), default=0) <= 2 * LONGEST:
        return words
    long = {word for word in words if len(word) > 2 * LONGEST}
    return (words - long).union(
        word[at : at + 2 * LONGEST] for word in long for at in range(0, len(word) - LONGEST, LONGEST)
    )


def pieces(search: str) -> list[str]:
    """What must all occur: the words of a search, and its quoted phrases as wholes."""
    found = dict.fromkeys(fold(phrase or word) for phrase, word in PIECE.findall(search))
    # What lies within another piece occurs wherever that one does.
    return [one for one in found if one and not any(one in other for other in found if other != one)]
