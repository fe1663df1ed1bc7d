"""What the store answers with, besides records."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from schemas.kind import Document, Kind


class Page(NamedTuple):
    """One page of a list, and the total of the list."""

    heads: list[Document]
    total: int


class Created(NamedTuple):
    """A record as it was created, by this request or by an earlier one with the same idempotency key."""

    record: Document
    is_replay: bool = False


class VisibleChange(NamedTuple):
    """A change as reported to a caller; the head is None if they do not have the record any more."""

    token: str
    kind: Kind
    id: int
    action: str
    at: datetime
    head: Document | None


class ChangesPage(NamedTuple):
    """Changes since a token, the token to continue with, and whether more are waiting."""

    changes: list[VisibleChange]
    next: str
    has_more: bool
