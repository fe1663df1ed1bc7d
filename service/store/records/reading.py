"""Reading and creating one record, the same way for every kind."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any
from weakref import WeakValueDictionary

from bson import ObjectId
from pymongo.errors import DuplicateKeyError, PyMongoError

from schemas.caller import Caller
from schemas.errors import (
    InvalidFields,
    NotAccessible,
    NotFound,
    Problems,
    TermExists,
    Trashed,
    Unavailable,
)
from schemas.event import EVENT
from schemas.event_representation import is_locked
from schemas.kind import Document, Kind
from schemas.language import Text
from schemas.site import Site
from schemas.slugs import numbered, slug_of
from service.passwords import Passwords
from service.store.change_feed import ChangeFeed
from service.store.convoys import Convoy
from service.store.counts import Counts
from service.store.epoch import Outdated
from service.store.known_links import KnownLinks
from service.store.links import category_tree
from service.store.links.fanout import Fanout
from service.store.links.resolving import Links, New
from service.store.links.usage import unused
from service.store.mongo.bulk_writes import Inserts
from service.store.mongo.client import Client, Collection, Database, collections
from service.store.mongo.id_blocks import Ids
from service.store.mongo.loaders import HEAD_FIELDS, HIDDEN_FIELDS, RecordLoader, Ref
from service.store.new_events import NewEvents, owing
from service.store.records.slugs import Slugs
from service.store.search import Vocabulary

log = logging.getLogger("kalends.store")
TRIES = 100
"""Maximum number of attempts at a write that conflicts with other writers."""
NO_PROBLEMS = Problems()


class Records:
    """Reads and creates records of every kind."""

    def __init__(self, client: Client, database: Database, site: Site) -> None:
        self.client = client
        self.database = database
        self._collections = collections(database)
        self.site = site
        self.ids = Ids(database)
        self.vocabulary = Vocabulary(database, self.ids)
        self.fanout = Fanout(database, site)
        self.counts = Counts(database, self.fanout)
        self.passwords = Passwords()
        self.feed = ChangeFeed(database)
        self._heads = RecordLoader(database, HEAD_FIELDS)
        self._wholes = RecordLoader(database, HIDDEN_FIELDS)
        self.slugs = Slugs(database)
        self._inserts = Inserts(database)
        self._new_events = NewEvents(self._inserts, self.fanout, self.counts)
        self._convoy = Convoy()
        self._links = Links(database, site, self._prepare_linked)
        self._known_links = KnownLinks(database, site, self._prepare_linked, self.fanout.epoch)
        self._tasks: set[asyncio.Task[None]] = set()
        self._turns: WeakValueDictionary[tuple[str, Ref], asyncio.Lock] = WeakValueDictionary()
        """Locks by record: writers of the same one queue instead of retrying after version conflicts."""

    def _collection(self, kind: Kind) -> Collection:
        return self._collections(kind.plural)

    async def find(self, kind: Kind, ref: Ref) -> Document:
        await self._count(kind)
        record = await self._wholes.load(kind.plural, ref)
        if record is None:
            raise NotFound(kind=kind.name)
        return record

    async def fetch(self, kind: Kind, ids: Sequence[int]) -> list[Document]:
        """Load records by id."""
        found = await self._wholes.load_many([(kind.plural, id) for id in ids])
        return [found[kind.plural, id] for id in ids if (kind.plural, id) in found]

    async def head(self, kind: Kind, ref: Ref, caller: Caller, password: str | None) -> Document:
        """Load a record's head, without its content, if the caller may read the record."""
        await self._count(kind)
        return await self._readable(kind, await self._heads.load(kind.plural, ref), caller, password)

    async def read(self, kind: Kind, ref: Ref, caller: Caller, password: str | None) -> Document:
        await self._count(kind)
        return await self._readable(kind, await self._wholes.load(kind.plural, ref), caller, password)

    async def _count(self, kind: Kind) -> None:
        """Bring the counters of terms up to date: terms show how many events they have."""
        if not kind.is_post:
            await self.counts.catch_up()

    async def _readable(
        self, kind: Kind, record: Document | None, caller: Caller, password: str | None
    ) -> Document:
        if record is None:
            raise NotFound(kind=kind.name)
        if record.get("status") == "trash":
            raise Trashed(kind=kind.name)
        if not caller.sees(record):
            raise NotAccessible(kind=kind.name)
        await self.passwords.check(record, caller, password)
        return record

    async def create(
        self, kind: Kind, data: Document, caller: Caller, problems: Problems = NO_PROBLEMS
    ) -> Document:
        """Create a record; raises InvalidFields with all invalid values, including those in `problems`."""
        try:
            problems.refuse()
            return await self._create(kind, data, caller)
        except InvalidFields as refused:
            raise InvalidFields(refused.params | await self._problems(kind, data, caller)) from None

    async def _create(self, kind: Kind, data: Document, caller: Caller) -> Document:
        if kind is EVENT:
            data = data | {"password": await self.passwords.hash(data.get("password"))}
        desired = desired_slug(kind, data)
        naming, number = self.slugs.naming(kind.plural, desired), 0
        async with self._convoy:
            for _ in range(TRIES):
                number = await naming.next(number)
                record = await self._prepare(kind, data, caller, numbered(desired, number))
                # Another process may take the slug, or create the term, first: the next attempt finds it.
                with suppress(DuplicateKeyError, Outdated, *([TermExists] if kind is EVENT else [])):
                    return await self._insert(kind, record, data, caller)
        raise Unavailable

    async def _prepare_linked(
        self, kind: Kind, data: Document, caller: Caller, taken: AbstractSet[str]
    ) -> Document:
        """Build a new linked record, with a slug that differs from those in `taken`, too."""
        slug = await self.slugs.free(kind.plural, desired_slug(kind, data), taken=taken)
        return await self._prepare(kind, data, caller, slug)

    async def _prepare(self, kind: Kind, data: Document, caller: Caller, slug: str) -> Document:
        """Build the document of a new record, with slug, search fields and id, without storing it."""
        record = await self._settle_new(kind, data, caller)
        record["slug"] = slug
        record |= await self.vocabulary.searchable(kind, record)
        return {"_id": await self.ids.next(kind.id_space), **record}

    async def _settle_new(self, kind: Kind, data: Document, caller: Caller) -> Document:
        """Build a new record from its data, before it gets a slug and an id."""
        record = kind.normalize(self._allowed(kind, data, caller, None), None, self.site)
        if kind.is_post:
            record.setdefault("author", caller.id)
        else:
            record |= await category_tree.settle_new(self.database, kind, record)
        if kind is EVENT:
            record.pop("new_password", None)
            record["locked"] = is_locked(record)
        return record | unused(kind) | {"version": 1, "modified_utc": self.site.now()}

    async def _insert(self, kind: Kind, record: Document, data: Document, caller: Caller) -> Document:
        if kind is not EVENT:
            if record.get("parent"):
                await category_tree.insert(self.client, self.database, kind, record)
            else:
                await self._inserts.one(kind.plural, record)
            return record
        await self._check_parent(record, caller)
        sent = {name: data.get(name) for name in kind.links}
        copies, new, epoch = await self._known_links.resolve(sent, caller)
        record |= copies
        try:
            is_stale = await self._store_event(record, new, epoch)
        except Outdated:
            self._known_links.forget(epoch)
            raise
        return await self._now(record) if is_stale else record

    async def _store_event(self, event: Document, new: Sequence[New], epoch: ObjectId | None) -> bool:
        """Store an event; return whether linked records have changed while it was stored."""
        if not new:
            return await self._new_events.one(event, epoch)
        if epoch and epoch != await self.fanout.epoch.now():
            raise Outdated
        async with self.counts.debts.noted(owing(event)):
            await self._store_together([*new, (EVENT, event)])
        return bool(await self._new_events.follow([event]))

    async def _store_together(self, new: Sequence[New]) -> None:
        """Insert all records in one transaction."""

        async def insert(session: Any) -> None:
            for kind, record in new:
                await self._collection(kind).insert_one(record, session=session)

        async with await self.client.start_session() as session:
            await session.with_transaction(insert)

    async def _after_event(self, event: Document) -> Document:
        """Check an event's copies after its links were written; return the current event."""
        return await self._now(event) if await self._new_events.follow([event]) else event

    async def _now(self, event: Document) -> Document:
        """Reload an event that was written; if that fails, return it as written. A primary that has just been
        elected may not show it yet."""
        try:
            return await self.find(EVENT, event["_id"])
        except (PyMongoError, NotFound) as error:
            log.warning("cannot reload an event; returning it as written: %s", error)
            return event

    def _allowed(self, kind: Kind, data: Document, caller: Caller, stored: Document | None) -> Document:
        """The data, limited to what the caller's role permits."""
        allowed = dict(data)
        if not kind.is_post:
            return allowed
        if not caller.writes_all:
            allowed.pop("author", None)
        if stored is None and not allowed.get("status"):
            allowed["status"] = "publish" if caller.publishes else "draft"
        if not caller.publishes and allowed.get("status") in ("publish", "future"):
            allowed["status"] = "pending"
        if "status" in allowed and not allowed["status"]:
            del allowed["status"]
        return allowed

    async def _problems(
        self, kind: Kind, data: Document, caller: Caller, stored: Document | None = None
    ) -> Problems:
        """Collect all invalid values of a write, after one of them was found."""
        found = Problems()
        with found.gather():
            kind.normalize(data, stored, self.site)
        if kind is EVENT:
            with found.gather():
                await self._check_parent(data, caller, stored)
            with found.gather():
                await self._links.resolve({name: data[name] for name in kind.links if name in data}, caller)
        elif not kind.is_post:
            with found.gather():
                await category_tree.check_parent(self.database, kind, data, stored)
        return found

    async def _check_parent(
        self, record: Mapping[str, Any], caller: Caller, stored: Mapping[str, Any] | None = None
    ) -> None:
        """Refuse a parent event that does not exist or that the caller may not see."""
        parent = record.get("post_parent")
        if not parent or (stored and parent == stored["post_parent"]):
            return
        found = await self.database["events"].find_one({"_id": parent}, {"author": 1, "status": 1})
        if found is None or not caller.sees(found) or (stored and parent == stored["_id"]):
            raise InvalidFields({"post_parent": Text("Must be the ID of another event.")})


def desired_slug(kind: Kind, data: Mapping[str, Any]) -> str:
    """The slug sent for a new record, or one made from its name."""
    return slug_of(data.get("slug") or "", "") or slug_of(data[kind.name_field], kind.name)
