"""Slugs: the readable part of a URL."""

from __future__ import annotations

import re
import unicodedata

from slugify import slugify
from text_unidecode import unidecode

SLUG_MAX_LENGTH = 200
TRASHED_SUFFIX = "__trashed"
# From Devanagari to Myanmar, Khmer, and kana of both widths.
SOUNDED = re.compile("[\u0900-\u109f\u1780-\u17ff\u3040-\u30ff\uff66-\uff9f]+")
"""Scripts whose marks are sounds of their own; in others they are accents, which slugs do without."""


def slug_of(text: str, default: str) -> str:
    """Lower-case ASCII words joined by `-`; `default` if nothing in the text can be transliterated."""
    if not text:
        return default
    plain = re.sub(r"<[^<>]*>", "", text)
    joined = re.sub(r"[\s./–—]+", "-", plain)
    spelled = SOUNDED.sub(_with_sounds, joined)
    allowed = re.sub(r"[^\w-]", "", spelled)
    return slugify(allowed, regex_pattern=r"[^-a-z0-9_]+", max_length=SLUG_MAX_LENGTH).strip("-") or default


def _with_sounds(found: re.Match[str]) -> str:
    # Composed, since a letter and its mark are one sound: `か` and the mark of `が` would be read as `ka`.
    return str(unidecode(unicodedata.normalize("NFKC", found[0])))


def numbered(slug: str, number: int) -> str:
    """The slug with `-2`, `-3` … appended, within the length limit; number 1 is the slug itself. In the trash
    it may be longer: the slug before must be in it, to be restored."""
    if number == 1:
        return slug
    suffix = f"-{number}"
    is_trashed = slug.endswith(TRASHED_SUFFIX)
    return slug[: None if is_trashed else SLUG_MAX_LENGTH - len(suffix)] + suffix
