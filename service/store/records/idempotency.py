"""Idempotency keys: a creation that is sent again is answered with the record as it was created.

The row of a key is inserted in the same transaction as the record, so that a crash leaves both or neither.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from schemas.errors import IdempotencyKeyReused
from schemas.preconditions import IdempotencyKey
from schemas.results import Created
from schemas.site import Site
from service.changes.feed import ChangeFeed
from service.mongo.client import Database, Row
from service.mongo.loaders import HIDDEN_FIELDS
from service.store.records.new_records import Documents

IDEMPOTENCY_KEYS = "idempotency_keys"
"""The collection."""
KEYS_KEPT_FOR = timedelta(hours=24)


class IdempotencyKeys:
    """The keys of creations, with the records that were created."""

    def __init__(self, database: Database, site: Site, feed: ChangeFeed) -> None:
        self._rows, self._now, self._feed = database[IDEMPOTENCY_KEYS], site.now, feed

    async def replay(self, key: IdempotencyKey) -> Created | None:
        """The record that was created with a key; raises IdempotencyKeyReused if the body was another one."""
        row = await self._feed.confirm(lambda: self._rows.find_one({"_id": key.id}))
        if row is None or await self._has_expired(row):
            return None
        if row["body"] != key.body:
            raise IdempotencyKeyReused
        return Created(row["record"], is_replay=True)

    async def _has_expired(self, row: Row) -> bool:
        """Whether a key may be used again. MongoDB deletes expired rows only once in a while."""
        if row["expires_at"] > self._now():
            return False
        await self._rows.delete_one({"_id": row["_id"], "expires_at": row["expires_at"]})
        return True

    async def used(self, ids: Collection[bytes]) -> set[bytes]:
        """The keys that were used to create records."""
        found = await self._rows.find({"_id": {"$in": list(ids)}}, {"_id": 1}).to_list(None)
        return {row["_id"] for row in found}

    def rows(self, documents: Documents) -> list[Row]:
        """The rows to insert with new records."""
        expires_at = self._now() + KEYS_KEPT_FOR
        return [
            {
                "_id": row.conditions.key.id,
                "body": row.conditions.key.body,
                "record": {name: value for name, value in record.items() if name not in HIDDEN_FIELDS},
                "expires_at": expires_at,
            }
            for row, record in documents.items()
            if row.conditions.key
        ]
