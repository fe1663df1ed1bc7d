"""The condition for the records that a caller may see, part of every list query."""

from __future__ import annotations

from typing import Any

from schemas.caller import Caller
from schemas.errors import InvalidFields
from schemas.language import Text

UNLOCKED = {"locked": {"$ne": True}}
"""Events without a password."""


def visible(caller: Caller, statuses: list[str] | None = None) -> dict[str, Any]:
    """Public records for everyone, plus their own for authors, all for viewers and editors; records in the
    trash only if requested."""
    if caller.sees_all:
        return {"status": {"$in": statuses} if statuses else {"$ne": "trash"}}
    if caller.own is not None:
        own = {"author": caller.own, "status": {"$in": statuses} if statuses else {"$ne": "trash"}}
        public = not statuses or "publish" in statuses
        return {"$or": [{"status": "publish"}, own]} if public else own
    if statuses and set(statuses) != {"publish"}:
        raise InvalidFields({"status": Text("Without a token only status=publish may be requested.")})
    return {"status": "publish"}
