"""Translatable messages, translation catalogues and language negotiation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from babel.messages.pofile import read_po

LANGUAGES = ("en", "de", "es", "fr")
CATALOGUES = Path(__file__).parent / "locale"


class Text(str):
    """An English message that keeps its template and values, so that it can be translated when it is sent.

    >>> Text("At most {limit} characters.", limit=5)
    'At most 5 characters.'
    """

    template: str
    values: Mapping[str, Any]

    def __new__(cls, template: str, **values: Any) -> Text:
        text = super().__new__(cls, template.format(**values) if values else template)
        text.template, text.values = template, values
        return text


@cache
def catalogue(language: str) -> Mapping[str, str]:
    """The translations into one language by English template; empty for English."""
    if language == "en":
        return {}
    with (CATALOGUES / f"{language}.po").open("rb") as file:
        return {str(m.id): str(m.string) for m in read_po(file) if m.id and m.string}


def translate(text: str, language: str) -> str:
    """Translates the text; falls back to English if there is no translation."""
    if isinstance(text, Text) and text.values:
        values = {k: translate(v, language) if isinstance(v, Text) else v for k, v in text.values.items()}
        return translate(text.template, language).format(**values)
    return catalogue(language).get(str(text), str(text))


def preferred(requested: str | None, accepted: str) -> str:
    """The response language: `?lang=` first, then the `Accept-Language` header by its weights."""
    if requested and (language := requested.lower().split("-")[0]) in LANGUAGES:
        return language
    return next((name for name in _by_weight(accepted) if name in LANGUAGES), "en")


def _by_weight(header: str) -> list[str]:
    weighted = []
    for part in header.lower().split(","):
        name, _, parameters = part.strip().partition(";")
        weight = parameters.strip().removeprefix("q=") or "1"
        if re.fullmatch(r"[01](\.[0-9]{0,3})?", weight) and float(weight) > 0:
            weighted.append((-float(weight), name.strip().split("-")[0]))
    return [name for _, name in sorted(weighted, key=lambda pair: pair[0])]
