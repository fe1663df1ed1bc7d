"""Slugs: the readable part of a URL."""

from __future__ import annotations

import re

from slugify import slugify

LONGEST = 200
TRASHED = "__trashed"


def slug_of(text: str, otherwise: str) -> str:
    """Lower-case ASCII words joined by `-`; `otherwise` if nothing in the text can be transliterated."""
    if not text:
        return otherwise
    plain = re.sub(r"<[^<>]*>", "", text)
    joined = re.sub(r"[\s./–—]+", "-", plain)
    kept = re.sub(r"[^\w-]", "", joined)
    return slugify(kept, regex_pattern=r"[^-a-z0-9_]+", max_length=LONGEST).strip("-") or otherwise


def numbered(slug: str, number: int) -> str:
    """The slug with `-2`, `-3` … appended, within the length limit; number 1 is the slug itself."""
    if number == 1:
        return slug
    ending = f"-{number}"
    return slug[: LONGEST - len(ending)] + ending
