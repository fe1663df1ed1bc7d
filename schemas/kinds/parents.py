"""Parents of events and categories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.caller import Caller
from schemas.errors import InvalidFields, not_found
from schemas.kind import Document, Kind
from schemas.language import Text

CYCLE = Text("A category cannot be its own ancestor.")


def parent_field(kind: Kind) -> str:
    return "post_parent" if kind.is_post else "parent"


def check_parent(
    kind: Kind,
    data: Mapping[str, Any],
    caller: Caller,
    parents: Mapping[int, Document],
    stored: Mapping[str, Any] | None = None,
) -> None:
    """Refuse a parent that does not exist, that the caller may not see, or that is the record itself or, in
    the category tree, one of its descendants."""
    field = parent_field(kind)
    if not (parent := data.get(field)) or (stored and parent == stored[field]):
        return
    found = parents.get(parent)
    is_own = stored is not None and parent == stored["_id"]
    if kind.is_post and (found is None or is_own or not caller.sees(found)):
        raise InvalidFields({field: Text("Must be the ID of another event.")})
    if not kind.is_post and found is None:
        raise InvalidFields({field: not_found(kind.name)})
    if not kind.is_post and stored and (is_own or stored["_id"] in (found or {})["ancestors"]):
        raise InvalidFields({field: CYCLE})
