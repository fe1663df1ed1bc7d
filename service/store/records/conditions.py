"""Checks the conditions of creations before every attempt: their idempotency keys were not used, and their
slugs are new. Unique indexes refuse what changes in between.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from schemas.errors import SLUG_TAKEN, PreconditionFailed, Unavailable
from schemas.kind import Kind
from service.store.records.idempotency import IdempotencyKeys
from service.store.records.new_records import NewRecord, Outcomes
from service.store.records.slugs import Slugs


async def failed_conditions(
    keys: IdempotencyKeys, slugs: Slugs, kind: Kind, rows: Sequence[NewRecord]
) -> Outcomes:
    """The rows that are not to be created any more, because a key was used or a slug is taken."""
    key_of = {row: row.conditions.key.id for row in rows if row.conditions.key}
    slug_of = {row: slug for row in rows if (slug := row.new_slug(kind))}
    used = await keys.used(key_of.values()) if key_of else ()
    taken = await slugs.stored(kind.plural, slug_of.values()) if slug_of else ()
    failed: Outcomes = {row: PreconditionFailed(SLUG_TAKEN) for row, slug in slug_of.items() if slug in taken}
    # Whoever sent the key is answered with the record of the request that was first, if it is still there.
    return failed | {row: Unavailable() for row, key in key_of.items() if key in used}


def without_rivals(kind: Kind, rows: Sequence[NewRecord]) -> list[NewRecord]:
    """The rows that can be created together: only the first of those with the same key, or with the same slug
    as a condition."""
    first: dict[Hashable, NewRecord] = {}
    for row in rows:
        for value in _unique_values(kind, row):
            first.setdefault(value, row)
    return [row for row in rows if all(first[value] is row for value in _unique_values(kind, row))]


def _unique_values(kind: Kind, row: NewRecord) -> Iterator[Hashable]:
    if row.conditions.key:
        yield row.conditions.key.id
    if slug := row.new_slug(kind):
        yield slug
