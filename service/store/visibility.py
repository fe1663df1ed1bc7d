"""Which records a caller may find, as a filter that every query starts from."""

from __future__ import annotations

from typing import Any

from schemas.caller import Caller
from schemas.errors import InvalidFields
from schemas.language import Text

UNLOCKED = {"locked": {"$ne": True}}
"""Events without a password."""


def visible(caller: Caller, statuses: list[str] | None = None) -> dict[str, Any]:
    """Public records for everybody, own ones for authors, all for those who see all; never the trash
    unless it is asked for."""
    if caller.sees_all:
        return {"status": {"$in": statuses} if statuses else {"$ne": "trash"}}
    if caller.own is not None:
        own = {"author": caller.own, "status": {"$in": statuses} if statuses else {"$ne": "trash"}}
        public = not statuses or "publish" in statuses
        return {"$or": [{"status": "publish"}, own]} if public else own
    if statuses and set(statuses) != {"publish"}:
        raise InvalidFields({"status": Text("Without a token only status=publish may be requested.")})
    return {"status": "publish"}
