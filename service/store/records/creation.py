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
from service.store.records.conditions import failed_conditions, without_rivals
from service.store.records.drafting import CONFLICTS, Drafter, Errors
from service.store.records.idempotency import IdempotencyKeys
from service.store.records.new_records import AlreadyImported, Drafts, NewRecord, Outcomes
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
        drafter: Drafter,
        passwords: Passwords,
        fanout: Fanout,
        change_log: ChangeLog,
        keys: IdempotencyKeys,
    ) -> None:
        self._database, self._feed, self._drafter, self._passwords = database, feed, drafter, passwords
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
            check = partial(failed_conditions, self._keys, self._drafter.slugs, kind, left)
            outcomes |= await self._feed.confirm(check)
            if not (left := without_rivals(kind, [row for row in left if row not in outcomes])):
                return outcomes
            with suppress(DuplicateKeyError):  # another import has created the same linked record
                outcomes |= await self._attempt(kind, left, expect_free=not attempt and len(left) == 1)
        return outcomes | {row: Unavailable() for row in rows if row not in outcomes}

    async def _attempt(self, kind: Kind, rows: Sequence[NewRecord], *, expect_free: bool) -> Outcomes:
        """Create records, and return what became of them. Those that conflict with other writers are missing:
        they are to be drafted again."""
        is_import, records = rows[0].import_key is not None, self._drafter.records
        with self._drafter.slugs.reservations() as reserved:
            async with self._import_lock if is_import else nullcontext():
                drafts, refused, new = await self._draft_all(kind, rows, reserved, expect_free=expect_free)
                await self._drafter.require_same(records)
                if is_import:
                    # Not with the events: an interrupted import is run again, and finds these records.
                    await self._drafter.insert_linked(new)
                    new = {}
            failed = await self._drafter.store(kind, list(drafts.values()), new, self._keys.rows(drafts))
        return refused | await self._outcomes(kind, drafts, failed)

    async def _draft_all(
        self, kind: Kind, rows: Sequence[NewRecord], reserved: set[Slug], *, expect_free: bool
    ) -> tuple[Drafts, Outcomes, Linked]:
        """The documents of valid rows, the problems of the others, and the linked records to create."""
        lookups = await self._drafter.look_up(kind, [row.data for row in rows])
        drafts: Drafts = {}
        refused: Outcomes = {}
        for row in rows:
            try:
                fields = self._drafter.normalize(kind, row.data, row.caller, lookups, problems=row.problems)
                drafts[row] = self._drafter.build(kind, row.data, row.caller, fields)
                if row.import_key:
                    drafts[row]["import_key"] = row.import_key
                if row.id:
                    drafts[row]["_id"] = row.id
            except Problem as problem:
                refused[row] = problem
        if not kind.is_post:
            refused |= await refuse_existing_terms(self._database, self._feed, kind, drafts)
        kept = [record for row, record in drafts.items() if row.new_slug(kind)]
        others = [record for row, record in drafts.items() if not row.new_slug(kind)]
        linked = self._linked(kind, drafts, lookups.resolver)
        await self._drafter.complete(kind, kept, reserved, keep_slugs=True)
        await self._drafter.complete(kind, others, reserved, expect_free=expect_free)
        await self._drafter.complete_linked(lookups.resolver.new, reserved)
        for row, record in drafts.items():
            record.update(copies_of(linked[row]))
        return drafts, refused, lookups.resolver.new

    def _linked(self, kind: Kind, drafts: Drafts, resolver: LinkResolver) -> dict[NewRecord, Linked]:
        """The records that each new one links to."""
        sent = {row: {name: row.data.get(name) for name in kind.links} for row in drafts}
        return {row: resolver.resolve(links, row.caller) for row, links in sent.items()}

    async def _outcomes(self, kind: Kind, drafts: Drafts, failed: Errors) -> Outcomes:
        """What became of records that were to be stored."""
        stored = [record for record in drafts.values() if record["_id"] not in failed]
        self._log.update_soon()
        current = await self._fanout.update_outdated(stored) if kind.links else {}
        outcomes: Outcomes = {}
        for row, record in drafts.items():
            error = failed.get(record["_id"])
            if error is None:
                # With a key, as every other request with this key is answered.
                outcomes[row] = record if row.conditions.key else current.get(record["_id"], record)
            elif violates(error, record, "import_key"):
                outcomes[row] = AlreadyImported()
            elif isinstance(error, CONFLICTS):
                continue
            elif len(drafts) > 1:  # the others must not fail with it
                outcomes |= await self.create_many(kind, [row])
            else:
                log.warning("a new %s cannot be stored: %s", kind.name, error)
                outcomes[row] = Unavailable()
        return outcomes
