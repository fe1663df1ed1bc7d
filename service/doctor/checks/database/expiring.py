"""Checks what is kept for a day: undo steps and idempotency keys."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from schemas import BY_NAME
from schemas.kind import Document
from service.doctor.findings import DatabaseCheck, Finding
from service.doctor.scope import Scope
from service.doctor.values import is_number, is_time
from service.store.records.idempotency import IDEMPOTENCY_KEYS


async def _find(
    scope: Scope, collection: str, noun: str, is_valid: Callable[[Document], bool]
) -> list[Finding]:
    return [
        Finding(
            f"{noun} {row['_id']!r:.60}",
            "it cannot be read",
            repair=partial(scope.database[collection].delete_one, {"_id": {"$eq": row["_id"]}}),
        )
        async for row in scope.collection(collection).find()
        if not (is_valid(row) and is_time(row.get("expires_at")))
    ]


def is_step(row: Document) -> bool:
    return (
        str(row.get("kind")) in BY_NAME
        and is_number(row.get("id"))
        and is_number(row.get("version"))
        and isinstance(row.get("values"), dict)
    )


def is_key(row: Document) -> bool:
    record = row.get("record")
    are_bytes = isinstance(row["_id"], bytes) and isinstance(row.get("body"), bytes)
    return are_bytes and isinstance(record, dict) and is_number(record.get("_id"), 1)


async def find_undo(scope: Scope) -> list[Finding]:
    return await _find(scope, "undo", "undo step", is_step)


async def find_keys(scope: Scope) -> list[Finding]:
    return await _find(scope, IDEMPOTENCY_KEYS, "idempotency key", is_key)


UNDO_STEPS = DatabaseCheck("undo steps", "an undo step cannot be read: removed", find_undo)
KEYS = DatabaseCheck("idempotency keys", "an idempotency key cannot be read: removed", find_keys)
