"""What a dump contains, and what its header tells."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from bson import Timestamp

from schemas import KINDS
from schemas.kind import Document
from service.changes.change import REMOVED_TERMS
from service.changes.log_rows import LOG

RECORDS = tuple(kind.plural for kind in KINDS)
CONTENTS = (*RECORDS, "words", "counters", "fanout_jobs", REMOVED_TERMS, "undo", "idempotency_keys")
"""Collections in every dump."""
NOT_DUMPED = {"meta", LOG}
"""The header has what is needed of `meta`; the change log begins anew after a restore."""
TOKENS, WEBHOOKS = "tokens", "webhooks"
SECRETS = (TOKENS, WEBHOOKS)
"""Collections that are only in a dump that was asked for them."""


class Header(NamedTuple):
    """The header of a dump."""

    form: int
    """The stored form."""
    version: str
    """The version of Kalends that made it."""
    taken_utc: datetime
    logged_until: Timestamp
    """The time up to which the changes of these records were counted and logged."""
    instance: Document
    """The identity of the database."""
    collections: list[str]

    @property
    def has_tokens(self) -> bool:
        return set(SECRETS) <= set(self.collections)


def parse_header(found: dict[str, Any]) -> Header | None:
    """The header in a document; None if it is something else."""
    try:
        return Header(**{name: found[name] for name in Header._fields})
    except KeyError:
        return None
