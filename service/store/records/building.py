"""Builds the documents of new records and stores them. What a batch needs (links, parents, ids, slugs, words)
is looked up once for all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pymongo.errors import DuplicateKeyError

from schemas.caller import Caller
from schemas.errors import NO_PROBLEMS, InvalidFields, Problems
from schemas.kind import Document, Kind
from schemas.kinds.event import EVENT
from schemas.kinds.event_representation import LINKED, is_locked
from schemas.kinds.parents import check_parent, parent_field
from schemas.kinds.post import apply_role_limits
from schemas.site import Site
from service.changes.feed import ChangeFeed
from service.mongo.bulk_writes import UNSTORABLE, insert_each
from service.mongo.client import Database, Row, Session, in_transaction
from service.mongo.id_blocks import Ids
from service.search import Vocabulary
from service.store.links.category_tree import CategoryTree, term_fields
from service.store.links.resolving import Linked, LinkResolver
from service.store.records.idempotency import IDEMPOTENCY_KEYS
from service.store.records.slugs import Slug, Slugs, desired_slug

CONFLICTS = (DuplicateKeyError, InvalidFields)
"""Another writer was first: it took the slug or the name, or deleted the parent."""
Errors = dict[int, Exception]
"""Errors by the ids of the records that were not stored."""
NO_EVENTS = {"publish": 0, "publish_end": None, "live_end": None, "as_of": None}
"""The usage counters of a new record."""
FIRST_FIELDS = ("status", "hide_from_listings", "locked", "start_utc", "end_utc")
"""Where a document begins. MongoDB looks for each field of a filter from the beginning: searches, which read
whole documents, are counted in a fifth less time."""
PARENT = {"author": 1, "status": 1, "ancestors": 1}
"""Fields of a parent that decide whether it is allowed."""


class Lookups(NamedTuple):
    """What a batch of records refers to."""

    resolver: LinkResolver
    parents: Mapping[int, Document]


class RecordBuilder:
    """Builds new documents, completes them with slugs, ids and search fields, and stores them."""

    def __init__(
        self,
        database: Database,
        site: Site,
        feed: ChangeFeed,
        ids: Ids,
        vocabulary: Vocabulary,
        tree: CategoryTree,
    ) -> None:
        self._database, self._feed, self._ids, self._tree = database, feed, ids, tree
        self.site, self.vocabulary, self.slugs = site, vocabulary, Slugs(database)

    def build(
        self, kind: Kind, data: Document, caller: Caller, normalized: Document | None = None
    ) -> Document:
        """The document of a new record, with the slug that it should have, but without an id."""
        record = self._normalized(kind, data, caller) if normalized is None else normalized
        if kind.is_post:
            record.setdefault("author", caller.id)
        else:
            record |= term_fields(record)
        if kind is EVENT:
            record.pop("new_password", None)
            record.setdefault("password", None)
            record["locked"] = is_locked(record)
        head = {"version": 1, "modified_utc": self.site.now(), "slug": desired_slug(kind, data)}
        counters = {"events": dict(NO_EVENTS)} if kind.embedded_fields else {}
        first = {name: record[name] for name in FIRST_FIELDS if name in record}
        return first | record | counters | head

    async def complete(
        self,
        kind: Kind,
        records: Sequence[Document],
        reserved: set[Slug],
        *,
        expect_free: bool = False,
        keep_slugs: bool = False,
    ) -> None:
        """Give every record its id unless it has one, a free slug, which is reserved, and its search fields.
        With `keep_slugs`, the unique index refuses slugs that are taken."""
        without_id = [record for record in records if record.get("_id", 0) <= 0]  # or a temporary one
        ids = await self._ids.many(kind.id_space, len(without_id))
        desired = [record["slug"] for record in records]
        if keep_slugs:
            slugs = self.slugs.reserve_exact(kind.plural, desired)
        else:
            slugs = await self.slugs.reserve_unique(kind.plural, desired, expect_free=expect_free)
        reserved.update((kind.plural, slug) for slug in slugs)
        for record, id in zip(without_id, ids, strict=True):
            record["_id"] = id
        for record, slug in zip(records, slugs, strict=True):
            record["slug"] = slug
        found = await self.vocabulary.all_searchable(kind, records)
        for record, searchable in zip(records, found, strict=True):
            record.update(searchable)

    async def complete_linked(self, new: Linked, reserved: set[Slug]) -> None:
        """Complete the records that events create by linking to them."""
        for field, records in new.items():
            await self.complete(LINKED[field], records, reserved)

    async def insert_linked(self, new: Linked, session: Session | None = None) -> None:
        """Store new linked records, before the events that link to them; raises DuplicateKeyError."""
        for field, records in new.items():
            errors = await insert_each(self._database[LINKED[field].plural], records, session)
            for error in errors.values():
                raise error

    async def store(
        self, kind: Kind, records: Sequence[Document], new: Linked, keys: Sequence[Row]
    ) -> Errors:
        """Store records, each by itself. If some are below others, or there are linked records to create or
        idempotency keys, all of them or none are stored, in one transaction."""
        below = [record for record in records if record.get("parent")]
        if not (below or new or keys):
            return await insert_each(self._database[kind.plural], records)

        async def insert(session: Session) -> None:
            await self.insert_linked(new, session)
            await insert_each(self._database[IDEMPOTENCY_KEYS], keys, session)
            for record in below:
                record["ancestors"] = await self._tree.ancestors(kind, record["parent"], session)
            await insert_each(self._database[kind.plural], records, session)

        try:
            await (self._tree.locked(insert) if below else in_transaction(self._database, insert))
        except (*UNSTORABLE, *CONFLICTS) as error:
            return {record["_id"]: error for record in records}
        return {}

    @property
    def records(self) -> str | None:
        """Identifies the set of all records that documents are built for."""
        return self._feed.restores.records

    async def require_same(self, records: str | None) -> None:
        """Raise UnderRestore if a restore has replaced all records while a document was built: it has ids of
        the old words and records."""
        if not self._feed.restores.is_ruled_out:
            await self._feed.catch_up()
        self._feed.restores.require(records)

    async def look_up(self, kind: Kind, bodies: Sequence[Mapping[str, Any]]) -> Lookups:
        """Load what a batch of records of one kind refers to."""
        return await self._feed.confirm(lambda: self._look_up(kind, bodies))

    async def _look_up(self, kind: Kind, bodies: Sequence[Mapping[str, Any]]) -> Lookups:
        resolver = LinkResolver(self._database, self.site, self.build)
        await resolver.load(bodies if kind.links else ())
        field = parent_field(kind)
        ids = {id for data in bodies if (id := data.get(field))}
        rows = self._database[kind.plural].find({"_id": {"$in": list(ids)}}, PARENT) if ids else None
        return Lookups(resolver, {row["_id"]: row async for row in rows} if rows else {})

    def normalize(
        self,
        kind: Kind,
        data: Document,
        caller: Caller,
        lookups: Lookups,
        stored: Document | None = None,
        problems: Problems = NO_PROBLEMS,
    ) -> Document:
        """The fields to store; raises InvalidFields with all invalid ones, including those in `problems`."""
        found, normalized = Problems(problems), Document()
        with found.gather():
            check_parent(kind, data, caller, lookups.parents, stored)
        with found.gather():
            lookups.resolver.check(data if kind.links else {}, caller)
        with found.gather():
            normalized = self._normalized(kind, data, caller, stored)
        found.refuse()
        return normalized

    def _normalized(
        self, kind: Kind, data: Document, caller: Caller, stored: Document | None = None
    ) -> Document:
        allowed = apply_role_limits(data, caller, stored) if kind.is_post else data
        return kind.normalize(allowed, stored, self.site)
