"""Steps that can be undone: the values that a record had before a change, kept for a day."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import timedelta

from schemas.kind import Document, Kind
from schemas.site import Site
from service.changes.feed import ChangeFeed
from service.mongo.client import Database

STEPS_KEPT_FOR = timedelta(days=1)


class UndoSteps:
    """Keeps and finds undo steps."""

    def __init__(self, database: Database, site: Site, feed: ChangeFeed) -> None:
        self._steps, self._now, self._feed = database["undo"], site.now, feed

    async def keep(self, kind: Kind, record: Document, values: Document, was: Mapping[str, str]) -> str:
        """Store the values that undo the change which made this version of a record, and the digests `was`
        that the undo is checked with; return the key of the step."""
        key = secrets.token_urlsafe(12)
        made = {"version": record["version"], "was": dict(was)}
        step = {"kind": kind.name, "id": record["_id"], "values": values, **made}
        await self._steps.insert_one({"_id": key, **step, "expires_at": self._now() + STEPS_KEPT_FOR})
        return key

    async def find(self, kind: Kind, id: int, key: str) -> Document | None:
        """The step with this key, if it belongs to this record."""
        query = {"_id": key, "kind": kind.name, "id": id}
        return await self._feed.confirm(lambda: self._steps.find_one(query))
