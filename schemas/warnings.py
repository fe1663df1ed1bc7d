"""Warnings about accepted input that is probably a mistake: unknown fields and misspelt statuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from schemas import BY_NAME
from schemas.kind import Kind
from schemas.language import Text

STATUSES = ("publish", "draft", "pending", "private", "future", "trash")
MIN_SIMILARITY = 0.7


def warnings_of(kind: Kind, values: Mapping[str, Any]) -> list[Text]:
    unknown = [Text("unknown field: {name}", name=name) for name in unknown_fields(kind, values)]
    return [*unknown, *misspelt_status(kind, values)]


def unknown_fields(kind: Kind, values: Mapping[str, Any]) -> Iterator[str]:
    """Names of the fields that the kind does not have, including those in the data of new linked records."""
    yield from (name for name in values if name not in kind.known_fields)
    for field, other in kind.links.items():
        sent = values.get(field)
        for data in sent if isinstance(sent, list) else [sent]:
            if isinstance(data, Mapping) and not data.get("id"):
                yield from (f"{field}.{name}" for name in unknown_fields(BY_NAME[other], data))


def misspelt_status(kind: Kind, values: Mapping[str, Any]) -> Iterator[Text]:
    status = values.get("status")
    if not kind.is_post or not isinstance(status, str) or status in STATUSES:
        return
    for meant in get_close_matches(status.lower(), STATUSES, 1, MIN_SIMILARITY):
        yield Text("unusual status: {status}; did you mean {meant}?", status=status, meant=meant)
