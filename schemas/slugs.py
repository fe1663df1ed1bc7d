"""Slugs: the readable part of an address."""

from __future__ import annotations

import re

from slugify import slugify

LONGEST = 200
TRASHED = "__trashed"


def slug_of(text: str, otherwise: str) -> str:
    """Lower-case ASCII words joined by `-`; `otherwise` where nothing of the text can be spelled."""
    if not text:
        return otherwise
    plain = re.sub(r"<[^<>]*>", "", text)
    joined = re.sub(r"[\s./–—]+", "-", plain)
    kept = re.sub(r"[^\w-]", "", joined)
    return slugify(kept, regex_pattern=r"[^-a-z0-9_]+", max_length=LONGEST).strip("-") or otherwise


def numbered(slug: str, number: int) -> str:
    """The slug's second, third … form, still within the limit."""
    if number == 1:
        return slug
    ending = f"-{number}"
    return slug[: LONGEST - len(ending)] + ending
