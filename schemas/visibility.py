"""Queries for what a caller may see: the rules of `Caller` in MongoDB's words."""

from __future__ import annotations

from datetime import datetime

from schemas.caller import Caller
from schemas.errors import InvalidFields
from schemas.kind import Document
from schemas.language import Text


def visible(caller: Caller, statuses: list[str] | None = None) -> Document:
    """Public records, and public copies of linked records, for everyone; their own for authors, all for
    viewers and editors; those in the trash only if requested. `Caller.sees` is the same rule in Python."""
    chosen: Document = {"status": {"$in": statuses} if statuses else {"$ne": "trash"}}
    if caller.sees_all:
        return chosen
    if caller.own is not None:
        own = {"author": caller.own, **chosen}
        return {"$or": [{"status": "publish"}, own]} if not statuses or "publish" in statuses else own
    if statuses and set(statuses) != {"publish"}:
        raise InvalidFields({"status": Text("Without a token only status=publish may be requested.")})
    return {"status": "publish"}


def cancelled(caller: Caller, since: datetime, statuses: list[str] | None) -> Document:
    """Records that were moved to the trash since a time, and that the caller could see before, with one of
    the statuses. The rule of `Caller.saw` in MongoDB's words."""
    before = {"trashed_from": {"$in": statuses}} if statuses else {}
    trashed: Document = {"status": "trash", "modified_utc": {"$gte": since}, **before}
    seen: list[Document] = [{"trashed_from": "publish"}]
    seen += [{"author": caller.own}] if caller.own is not None else []
    return trashed if caller.sees_all else trashed | {"$or": seen}
