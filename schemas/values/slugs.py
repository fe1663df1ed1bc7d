"""Slugs: the readable part of a URL."""

from __future__ import annotations

import re

from slugify import slugify

SLUG_MAX_LENGTH = 200
TRASHED_SUFFIX = "__trashed"


def slug_of(text: str, default: str) -> str:
    """Lower-case ASCII words joined by `-`; `default` if nothing in the text can be transliterated."""
    if not text:
        return default
    plain = re.sub(r"<[^<>]*>", "", text)
    joined = re.sub(r"[\s./–—]+", "-", plain)
    allowed = re.sub(r"[^\w-]", "", joined)
    return slugify(allowed, regex_pattern=r"[^-a-z0-9_]+", max_length=SLUG_MAX_LENGTH).strip("-") or default


def numbered(slug: str, number: int) -> str:
    """The slug with `-2`, `-3` … appended, within the length limit; number 1 is the slug itself. In the trash
    it may be longer: the slug before must be in it, to be restored."""
    if number == 1:
        return slug
    suffix = f"-{number}"
    is_trashed = slug.endswith(TRASHED_SUFFIX)
    return slug[: None if is_trashed else SLUG_MAX_LENGTH - len(suffix)] + suffix
