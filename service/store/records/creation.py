"""Creates records. Group commit: concurrent creations form the next batch while one is being stored."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from functools import partial

from pymongo.errors import DuplicateKeyError

from schemas import KINDS
from schemas.caller import Caller
from schemas.errors import NO_PROBLEMS, Problem, Problems, Unavailable
from schemas.kind import Document, Kind
from schemas.preconditions import NO_CONDITIONS, CreationConditions
from schemas.results import Created
from service.changes.feed import ChangeFeed
from service.changes.log import ChangeLog
from service.mongo.bulk_writes import GROUP_COMMIT, violates
from service.mongo.client import Database
from service.mongo.coalescing import Batcher
from service.passwords import Passwords
from service.store.links.category_tree import refuse_existing_terms
from service.store.links.fanout import Fanout
from service.store.links.resolving import Linked, LinkResolver, copies_of
from service.store.records.building import CONFLICTS, Errors, RecordBuilder
from service.store.records.conditions import failed_conditions, without_rivals
from service.store.records.idempotency import IdempotencyKeys
from service.store.records.new_records import AlreadyImported, Documents, NewRecord, Outcomes
from service.store.records.slugs import Slug

log = logging.getLogger("kalends.store")
MAX_CREATE_ATTEMPTS = 100
"""Attempts at a write that conflicts with other writers."""


class Creator:
    """Creates records of every kind."""

    def __init__(
        self,
        database: Database,
        feed: ChangeFeed,
        builder: RecordBuilder,
        passwords: Passwords,
        fanout: Fanout,
        change_log: ChangeLog,
        keys: IdempotencyKeys,
    ) -> None:
        self._database, self._feed, self._builder, self._passwords = database, feed, builder, passwords
        self._fanout, self._log, self._keys = fanout, change_log, keys
        self._import_lock = asyncio.Lock()
        """Batches of an import that describe the same new venue must create it once."""
        self.batchers = {
            kind.plural: Batcher[NewRecord, Document | Exception](
                partial(self.create_many, kind), **GROUP_COMMIT
            )
            for kind in KINDS
        }

    async def create(self, kind: Kind, data: Document, caller: Caller) -> Document:
        """Create a record; raises InvalidFields with all invalid values."""
        return (await self.create_once(kind, data, caller, NO_PROBLEMS)).record

    async def create_once(
        self,
        kind: Kind,
        data: Document,
        caller: Caller,
        problems: Problems,
        conditions: CreationConditions = NO_CONDITIONS,
    ) -> Created:
        """Create a record, unless another request with the same idempotency key is first; raises
        InvalidFields with all invalid values, including those in `problems`."""
        data = await self.with_hashed_password(data)
        row = NewRecord(data, caller, problems, conditions=conditions)
        created = await self.batchers[kind.plural].load(row)
        if isinstance(created, Exception):
            # The other one may also be the reason why this one is refused: a name that exists already.
            if conditions.key and (replay := await self._keys.replay(conditions.key)):
                return replay
            raise created
        assert created is not None
        return Created(created)

    async def with_hashed_password(self, data: Document) -> Document:
        if not data.get("password"):
            return data
        return data | {"password": await self._passwords.hash(data["password"])}

    async def create_many(self, kind: Kind, rows: Sequence[NewRecord]) -> Outcomes:
        """Create records together; return each of them, or why it was not created."""
        outcomes: Outcomes = {}
        for attempt in range(MAX_CREATE_ATTEMPTS):
            left = [row for row in rows if row not in outcomes]
            check = partial(failed_conditions, self._keys, self._builder.slugs, kind, left)
            outcomes |= await self._feed.confirm(check)
            if not (left := without_rivals(kind, [row for row in left if row not in outcomes])):
                return outcomes
            with suppress(DuplicateKeyError):  # another import has created the same linked record
                outcomes |= await self._attempt(kind, left, expect_free=not attempt and len(left) == 1)
        return outcomes | {row: Unavailable() for row in rows if row not in outcomes}

    async def _attempt(self, kind: Kind, rows: Sequence[NewRecord], *, expect_free: bool) -> Outcomes:
        """Create records, and return what became of them. Those that conflict with other writers are missing:
        they are to be built again."""
        is_import, records = rows[0].import_key is not None, self._builder.records
        with self._builder.slugs.reservations() as reserved:
            async with self._import_lock if is_import else nullcontext():
                documents, refused, new = await self._build_all(kind, rows, reserved, expect_free=expect_free)
                await self._builder.require_same(records)
                if is_import:
                    # Not with the events: an interrupted import is run again, and finds these records.
                    await self._builder.insert_linked(new)
                    new = {}
            failed = await self._builder.store(
                kind, list(documents.values()), new, self._keys.rows(documents)
            )
        return refused | await self._outcomes(kind, documents, failed)

    async def _build_all(
        self, kind: Kind, rows: Sequence[NewRecord], reserved: set[Slug], *, expect_free: bool
    ) -> tuple[Documents, Outcomes, Linked]:
        """The documents of valid rows, the problems of the others, and the linked records to create."""
        lookups = await self._builder.look_up(kind, [row.data for row in rows])
        documents: Documents = {}
        refused: Outcomes = {}
        for row in rows:
            try:
                fields = self._builder.normalize(kind, row.data, row.caller, lookups, problems=row.problems)
                documents[row] = self._builder.build(kind, row.data, row.caller, fields)
                if row.import_key:
                    documents[row]["import_key"] = row.import_key
                if row.id:
                    documents[row]["_id"] = row.id
            except Problem as problem:
                refused[row] = problem
        if not kind.is_post:
            refused |= await refuse_existing_terms(self._database, self._feed, kind, documents)
        kept = [record for row, record in documents.items() if row.new_slug(kind)]
        others = [record for row, record in documents.items() if not row.new_slug(kind)]
        linked = self._linked(kind, documents, lookups.resolver)
        await self._builder.complete(kind, kept, reserved, keep_slugs=True)
        await self._builder.complete(kind, others, reserved, expect_free=expect_free)
        await self._builder.complete_linked(lookups.resolver.new, reserved)
        for row, record in documents.items():
            record.update(copies_of(linked[row]))
        return documents, refused, lookups.resolver.new

    def _linked(self, kind: Kind, documents: Documents, resolver: LinkResolver) -> dict[NewRecord, Linked]:
        """The records that each new one links to."""
        sent = {row: {name: row.data.get(name) for name in kind.links} for row in documents}
        return {row: resolver.resolve(links, row.caller) for row, links in sent.items()}

    async def _outcomes(self, kind: Kind, documents: Documents, failed: Errors) -> Outcomes:
        """What became of records that were to be stored."""
        stored = [record for record in documents.values() if record["_id"] not in failed]
        self._log.update_soon()
        current = await self._fanout.update_outdated(stored) if kind.links else {}
        outcomes: Outcomes = {}
        for row, record in documents.items():
            error = failed.get(record["_id"])
            if error is None:
                # With a key, as every other request with this key is answered.
                outcomes[row] = record if row.conditions.key else current.get(record["_id"], record)
            elif violates(error, record, "import_key"):
                outcomes[row] = AlreadyImported()
            elif isinstance(error, CONFLICTS):
                continue
            elif len(documents) > 1:  # the others must not fail with it
                outcomes |= await self.create_many(kind, [row])
            else:
                log.warning("a new %s cannot be stored: %s", kind.name, error)
                outcomes[row] = Unavailable()
        return outcomes
