"""Updates records, the same way for every kind, with optimistic locking. Group commit: concurrent updates of
different events form the next batch while one is being stored."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from weakref import WeakValueDictionary

from pymongo.errors import DuplicateKeyError

from schemas.caller import Caller
from schemas.errors import (
    NO_PROBLEMS,
    DuplicateTermSlug,
    Forbidden,
    NotFound,
    PreconditionFailed,
    Problems,
    Unavailable,
)
from schemas.kind import Document, Kind
from schemas.kinds.event import EVENT
from schemas.kinds.event_representation import changed_fields, is_locked
from schemas.link_refs import name_key
from schemas.preconditions import NO_PRECONDITIONS, Preconditions
from schemas.values.slugs import TRASHED_SUFFIX, slug_of
from service.changes.list_fields import last_change_of
from service.changes.log import ChangeLog
from service.mongo.bulk_writes import GROUP_COMMIT, NoMatch, Update, update_each, update_one
from service.mongo.client import Database, Session, in_transaction
from service.mongo.coalescing import Batcher
from service.mongo.loaders import HIDDEN_FIELDS, Ref
from service.passwords import Passwords
from service.store.links.category_tree import CategoryTree
from service.store.links.fanout import Fanout
from service.store.links.resolving import Linked, copies_of
from service.store.records.building import RecordBuilder
from service.store.records.reading import Reader

MAX_UPDATE_ATTEMPTS = 100
"""Attempts at an update that conflicts with other writers."""
Saved = tuple[Document, list[Document]]
"""An updated record, and its fan-out job, if events embed what has changed."""


class Updater:
    """Updates records."""

    def __init__(
        self,
        database: Database,
        reader: Reader,
        builder: RecordBuilder,
        passwords: Passwords,
        tree: CategoryTree,
        fanout: Fanout,
        log: ChangeLog,
    ) -> None:
        self._database, self._builder, self._passwords = database, builder, passwords
        self._tree, self._fanout, self._log = tree, fanout, log
        self.find = reader.find
        self._locks: WeakValueDictionary[tuple[str, Ref], asyncio.Lock] = WeakValueDictionary()
        """Locks by record: writers of the same one queue instead of retrying after version conflicts."""
        self.batcher = Batcher[Update, Exception](
            partial(update_each, database[EVENT.plural]), **GROUP_COMMIT
        )

    async def update(
        self,
        kind: Kind,
        ref: Ref,
        data: Document,
        caller: Caller,
        preconditions: Preconditions = NO_PRECONDITIONS,
        problems: Problems = NO_PROBLEMS,
        allow: Callable[[Document], None] = lambda stored: None,
    ) -> Document:
        """Update a record; raises InvalidFields with all invalid values, including those in `problems`.
        `allow` may refuse the stored record by raising an error."""
        if problems:
            await self._refuse(kind, ref, data, caller, problems)
        async with self._locks.setdefault((kind.plural, ref), asyncio.Lock()):
            for _ in range(MAX_UPDATE_ATTEMPTS):
                stored, records = await self.find(kind, ref), self._builder.records  # in this order
                allow(stored)
                await self.check(stored, caller, preconditions)
                try:
                    record, jobs = await self._attempt(kind, stored, data, caller, records)
                    break
                except DuplicateKeyError:
                    if not kind.is_post:
                        raise DuplicateTermSlug from None
                except NoMatch:  # another process has changed it since it was read
                    continue
            else:
                raise Unavailable
        await self._fanout.run_soon(jobs)
        return record

    async def check(self, stored: Document, caller: Caller, preconditions: Preconditions) -> None:
        """Refuse a change that the caller may not make, or not to this version."""
        if not caller.may_write(stored):
            raise Forbidden
        await self._passwords.check(stored, caller, preconditions.password)
        if not preconditions.allow(stored):
            raise PreconditionFailed

    async def _refuse(self, kind: Kind, ref: Ref, data: Document, caller: Caller, problems: Problems) -> None:
        stored: Document | None = None
        with suppress(NotFound):  # what is wrong with the body is said first
            stored = await self.find(kind, ref)
        # Messages must not reveal stored values that are protected or not the caller's to edit.
        own = stored if stored and caller.may_write(stored) and not is_locked(stored) else None
        lookups = await self._builder.look_up(kind, [data])
        self._builder.normalize(kind, data, caller, lookups, own, problems)

    async def _attempt(
        self, kind: Kind, stored: Document, data: Document, caller: Caller, records: str | None
    ) -> Saved:
        lookups = await self._builder.look_up(kind, [data])
        wanted = self._builder.normalize(kind, data, caller, lookups, stored)
        links = lookups.resolver.resolve({name: data[name] for name in kind.links if name in data}, caller)
        if kind is EVENT:
            wanted.pop("password", None)
            if "new_password" in wanted:
                wanted["password"] = await self._passwords.hash(wanted.pop("new_password"))
            elif "password_hash" in wanted:  # from an export
                wanted["password"] = wanted.pop("password_hash")
            if "password" in wanted:
                wanted["locked"] = is_locked(wanted)
        wanted["slug"] = await self._new_slug(kind, stored, wanted, data)
        own = {name: value for name, value in wanted.items() if name not in links}
        fields = changed_fields(kind, stored, own, caller)
        if any(name in kind.search_fields for name in fields):
            fields |= await self._builder.vocabulary.searchable(kind, stored | fields)
        if kind.name_field in fields and not kind.is_post:
            fields["key"] = name_key(fields["name"])
        with self._builder.slugs.reservations() as reserved:
            await self._builder.complete_linked(lookups.resolver.new, reserved)
            fields |= changed_fields(kind, stored, copies_of(links), caller)
            if not fields:
                return stored, []
            now = max(self._builder.site.now(), stored["modified_utc"])  # another process may be ahead
            fields |= {"modified_utc": now, "has_own_time": now > stored["modified_utc"]}
            await self._builder.require_same(records)
            return await self._save(kind, stored, fields, lookups.resolver.new)

    async def _new_slug(self, kind: Kind, stored: Document, wanted: Document, data: Document) -> str:
        """The slug after the change."""
        base: str = stored["slug"]
        if stored.get("status") == "trash":
            base = re.sub(rf"{TRASHED_SUFFIX}(-\d+)?$", "", base)
        desired = slug_of(data.get("slug") or "", base)
        if wanted.get("status", stored.get("status")) == "trash":
            desired = base + TRASHED_SUFFIX if stored.get("status") != "trash" else stored["slug"]
        if desired == stored["slug"] or not kind.is_post:
            return desired
        return await self._builder.slugs.free(kind.plural, desired, stored["_id"])

    async def _save(self, kind: Kind, stored: Document, fields: Document, new: Linked) -> Saved:
        fields |= last_change_of(kind, stored, stored | fields)
        change: Document = {"$set": fields, "$inc": {"version": 1}}
        if "key" in fields or "parent" in fields:
            change["$unset"] = {"claim": ""}  # the claim on the name that was made at creation
        query = {"_id": stored["_id"], "version": stored["version"]}
        jobs = await self._write(kind, Update(query, change), new)
        record = updated_record(stored, change)
        self._log.update_soon()
        current = await self._fanout.update_outdated([record]) if fields.keys() & kind.links.keys() else {}
        return current.get(record["_id"], record), jobs

    async def _write(self, kind: Kind, update: Update, new: Linked) -> list[Document]:
        """Update a record; return its fan-out job, if events embed what has changed. A job or new linked
        records are stored in the same transaction: a refused update leaves neither."""

        async def write(session: Session) -> list[Document]:
            await self._builder.insert_linked(new, session)
            await update_one(self._database[kind.plural], update, session)
            fields = update.change["$set"]
            return await self._fanout.enqueue_if_embedded(kind, update.query["_id"], fields, session)

        if "parent" in update.change["$set"]:
            return await self._tree.move(kind, update)
        if kind is not EVENT or new:
            return await in_transaction(self._database, write)
        if failed := await self.batcher.load(update):
            raise failed
        return []


def updated_record(stored: Document, change: Document) -> Document:
    """The record after an update, computed locally: for find_one_and_update the server would store a second
    copy of the document, in case the driver retries the write."""
    gone = HIDDEN_FIELDS.keys() | change.get("$unset", {}).keys()
    now = stored | change["$set"] | {"version": stored["version"] + change["$inc"]["version"]}
    return {name: value for name, value in now.items() if name not in gone}
