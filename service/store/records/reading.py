"""Reads single records, the same way for every kind."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.caller import Caller
from schemas.errors import NotAccessible, NotFound, Trashed
from schemas.kind import Document, Kind
from service.changes.feed import ChangeFeed
from service.changes.log import ChangeLog
from service.mongo.client import Database
from service.mongo.loaders import HEAD_FIELDS, HIDDEN_FIELDS, RecordLoader, Ref
from service.passwords import Passwords


class Reader:
    """Loads records; concurrent reads share a query."""

    def __init__(self, database: Database, feed: ChangeFeed, passwords: Passwords, log: ChangeLog) -> None:
        self._feed, self._passwords, self._log = feed, passwords, log
        self.heads = RecordLoader(database, HEAD_FIELDS)
        self.records = RecordLoader(database, HIDDEN_FIELDS)

    async def find(self, kind: Kind, ref: Ref, loader: RecordLoader | None = None) -> Document:
        """A record, whoever may see it; raises NotFound."""
        if not kind.is_post:  # terms are shown with the number of their events
            await self._log.catch_up_counters()
        record = await self._feed.confirm(lambda: (loader or self.records).load(kind.plural, ref))
        if record is None:
            raise NotFound(kind=kind.name)
        return record

    async def find_many(self, kind: Kind, ids: Sequence[int]) -> list[Document]:
        """The records that exist of these ids."""
        refs = [(kind.plural, id) for id in ids]
        found = await self._feed.confirm(lambda: self.records.load_many(refs))
        return [found[kind.plural, id] for id in ids if (kind.plural, id) in found]

    async def read(self, kind: Kind, ref: Ref, caller: Caller, password: str | None) -> Document:
        return await self._readable(self.records, kind, ref, caller, password)

    async def head(self, kind: Kind, ref: Ref, caller: Caller, password: str | None) -> Document:
        """A record's head, without its content, if the caller may read the record."""
        return await self._readable(self.heads, kind, ref, caller, password)

    async def _readable(
        self, loader: RecordLoader, kind: Kind, ref: Ref, caller: Caller, password: str | None
    ) -> Document:
        record = await self.find(kind, ref, loader)
        if record.get("status") == "trash":
            raise Trashed(kind=kind.name, was_seen=caller.saw(record))
        if not caller.sees(record):
            raise NotAccessible(kind=kind.name)
        await self._passwords.check(record, caller, password)
        return record
