"""Text as `search` compares it: without case, accents and markup."""

from __future__ import annotations

import html
import re
import unicodedata

import nh3

TOKEN = re.compile(r"\w+|[^\w\s]")
PIECE = re.compile(r'"([^"]+)"|(\S+)')
LONGEST = 40
"""Longer parts of a search are looked up by their beginning, then compared with the text itself."""


def fold(text: str) -> str:
    """Case and accents removed; white space becomes single blanks."""
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    plain = "".join(char for char in decomposed if not unicodedata.combining(char))
    return " ".join(plain.split())


def without_markup(text: str) -> str:
    """The words of an HTML text."""
    if "<" not in text and "&" not in text:
        return text
    spaced = re.sub(r"(</?[a-zA-Z])", r" \1", text)
    return html.unescape(nh3.clean(spaced, tags=set(), clean_content_tags={"script", "style"}))


def tokens(folded: str) -> set[str]:
    """The distinct words of a folded text, and each mark as a word of its own.

    A very long word counts as overlapping stretches, so that each of its short parts lies within one.
    """
    return {
        word[at : at + 2 * LONGEST]
        for word in TOKEN.findall(folded)
        for at in range(0, max(len(word) - LONGEST, 1), LONGEST)
    }


def pieces(search: str) -> list[str]:
    """What must all occur: the words of a search, and its quoted phrases as wholes."""
    return [fold(phrase or word) for phrase, word in PIECE.findall(search) if fold(phrase or word)]
