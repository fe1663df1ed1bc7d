"""Callers: roles, what each may read and write, and the same rules as queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any

from schemas.errors import InvalidFields
from schemas.language import Text

Query = dict[str, Any]


class Role(StrEnum):
    VIEWER = "viewer"
    CONTRIBUTOR = "contributor"
    AUTHOR = "author"
    EDITOR = "editor"
    ADMIN = "admin"


WRITERS = {Role.CONTRIBUTOR, Role.AUTHOR, Role.EDITOR, Role.ADMIN}
EDITORS = {Role.EDITOR, Role.ADMIN}
PUBLISHED = ("publish", "future")
"""Statuses of records that are public, or will be on their publication date."""


@dataclass(frozen=True)
class Caller:
    """The sender of a request: a role, or none for the anonymous public."""

    id: int = 0
    role: Role | None = None
    bypasses_passwords: bool = False
    """May read and write password-protected events without the password."""

    @property
    def sees_all(self) -> bool:
        return self.role in EDITORS or self.role is Role.VIEWER

    @property
    def writes(self) -> bool:
        return self.role in WRITERS

    @property
    def writes_all(self) -> bool:
        return self.role in EDITORS

    @property
    def publishes(self) -> bool:
        return self.writes and self.role is not Role.CONTRIBUTOR

    @property
    def own(self) -> int | None:
        """The caller's author ID if only the caller's own unpublished records are accessible, else None."""
        return self.id if self.writes and not self.writes_all else None

    @cached_property
    def visibility_key(self) -> tuple[bool, int | None, bool]:
        """The properties that determine what the caller is shown; used in cache keys."""
        return (self.sees_all, self.own, self.bypasses_passwords)

    def sees(self, record: Mapping[str, Any]) -> bool:
        return bool(
            record.get("status", "publish") == "publish"
            or self.sees_all
            or (self.own is not None and record.get("author") == self.own)
        )

    def saw(self, record: Mapping[str, Any]) -> bool:
        """Whether the caller could see a record before it was moved to the trash."""
        return self.sees({**record, "status": record.get("trashed_from")})

    def may_write(self, record: Mapping[str, Any]) -> bool:
        if self.writes_all:
            return True
        # A contributor may no longer change a record once an editor has published it.
        is_free = self.publishes or record.get("status") not in PUBLISHED
        return self.writes and is_free and record.get("author", self.id) == self.id


PUBLIC = Caller()
EVERYBODY = Caller(role=Role.ADMIN)
"""Every caller in open mode: full access, but protected events still require their password."""


def visible(caller: Caller, statuses: list[str] | None = None) -> Query:
    """Public records, and public copies of linked records, for everyone; their own for authors, all for
    viewers and editors; those in the trash only if requested. `Caller.sees` is the same rule in Python."""
    chosen: Query = {"status": {"$in": statuses} if statuses else {"$ne": "trash"}}
    if caller.sees_all:
        return chosen
    if caller.own is not None:
        own = {"author": caller.own, **chosen}
        return {"$or": [{"status": "publish"}, own]} if not statuses or "publish" in statuses else own
    if statuses and set(statuses) != {"publish"}:
        raise InvalidFields({"status": Text("Without a token only status=publish may be requested.")})
    return {"status": "publish"}


def cancelled(caller: Caller, since: datetime, statuses: list[str] | None) -> Query:
    """Records that were moved to the trash since a time, and that the caller could see before, with one of
    the statuses. The rule of `Caller.saw` in MongoDB's words."""
    before = {"trashed_from": {"$in": statuses}} if statuses else {}
    trashed: Query = {"status": "trash", "modified_utc": {"$gte": since}, **before}
    seen: list[Query] = [{"trashed_from": "publish"}]
    seen += [{"author": caller.own}] if caller.own is not None else []
    return trashed if caller.sees_all else trashed | {"$or": seen}
