"""Normalizes text for `search`: removes case, accents and HTML markup."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable

# A tag must be closed before the next `<` outside quotes; otherwise it is text. Possessive quantifiers
# prevent backtracking, and a quote that opens in one attempt closes in another, so that all attempts
# together take linear time.
TAG = re.compile(r"""<(?:(!--)|(/?[a-zA-Z][^\s/<>"']*+)(?:[^<>"']++|"[^"]*+"|'[^']*+')*+>)""")
INLINE_ELEMENTS = {
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i",
    "ins", "kbd", "mark", "nobr", "q", "rb", "rp", "rt", "rtc", "ruby", "s", "samp", "small", "span",
    "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
}  # fmt: skip
"""Elements that do not separate the words around them."""
INVISIBLE_ELEMENTS = {
    "!--": re.compile("-->"),
    "script": re.compile("</script[^>]*>?", re.IGNORECASE),
    "style": re.compile("</style[^>]*>?", re.IGNORECASE),
}
"""Elements whose content is not visible, and the pattern that ends each."""
TOKEN = re.compile(r"\w+|[^\w\s]")
SEARCH_TERM = re.compile(r'"([^"]+)"|(\S+)')
MAX_TOKEN_CHARS = 40
"""Longer search terms are looked up by their first characters, then compared with the full text."""

SORT_KEY_MAX_LENGTH = 100
"""Number of leading characters of a name that are used for sorting."""


FOLDED_CHARS = 200
"""Characters that are normalized at a time: to order a run of accents takes the square of its length."""


def fold(text: str) -> str:
    """Removes case and accents, and collapses white space."""
    if text.isascii():
        return " ".join(text.lower().split())
    pieces = (text[at : at + FOLDED_CHARS] for at in range(0, len(text), FOLDED_CHARS))
    return " ".join("".join(map(_without_accents, pieces)).split())


def _without_accents(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(char for char in decomposed if not unicodedata.combining(char))


def sort_key(name: str) -> str:
    """The key that lists sort names by."""
    return fold(name)[:SORT_KEY_MAX_LENGTH]


def without_markup(text: str) -> str:
    """The visible text of an HTML string. A single pass, so nested markup cannot make it slow."""
    if "<" not in text and "&" not in text:
        return text
    kept, at = [], 0
    while tag := TAG.search(text, at):
        name = (tag[1] or tag[2]).lower()
        joins = tag[1] or name.removeprefix("/") in INLINE_ELEMENTS
        kept += [html.unescape(text[at : tag.start()]), "" if joins else " "]
        at = tag.end()
        if closing := INVISIBLE_ELEMENTS.get(name):
            found = closing.search(text, at)
            at = found.end() if found else len(text)
    return "".join([*kept, html.unescape(text[at:])])


def tokens(folded: str) -> set[str]:
    """The distinct words of a folded text, with each punctuation mark as a separate word.

    A very long word is split into overlapping chunks, so that each of its short substrings lies within one.
    """
    words = set(folded.split())
    if joined := {word for word in words if not word.isalnum()}:
        words = (words - joined).union(*map(TOKEN.findall, joined))
    if max(map(len, words), default=0) <= 2 * MAX_TOKEN_CHARS:
        return words
    long = {word for word in words if len(word) > 2 * MAX_TOKEN_CHARS}
    return (words - long).union(
        word[at : at + 2 * MAX_TOKEN_CHARS]
        for word in long
        for at in range(0, len(word) - MAX_TOKEN_CHARS, MAX_TOKEN_CHARS)
    )


def search_terms(search: str) -> list[str]:
    """The search terms, all of which must match: words and quoted phrases."""
    found = dict.fromkeys(fold(phrase or word) for phrase, word in SEARCH_TERM.findall(search))
    # A term that is part of another one matches wherever that one does.
    return [one for one in found if one and not any(one in other for other in found if other != one)]


def fold_all(sent: Iterable[tuple[str, str]]) -> str:
    """All texts of a record, normalized, one per line."""
    marked_up = ("description", "excerpt")
    return "\n".join(fold(without_markup(text) if name in marked_up else text) for name, text in sent)


def trigrams(word: str) -> list[str]:
    """The trigrams of a word."""
    return sorted({word[at : at + 3] for at in range(max(len(word) - 2, 0))})
