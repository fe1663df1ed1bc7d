"""Records: reading, creating, changing and deleting one, the same way for every kind."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from schemas.caller import Caller, Role
from schemas.errors import (
    DuplicateTermSlug,
    Forbidden,
    InvalidFields,
    NotAccessible,
    NotFound,
    PreconditionFailed,
    Trashed,
    Unavailable,
)
from schemas.event import EVENT
from schemas.kind import Document, Kind
from schemas.language import Text
from schemas.site import Site
from schemas.slugs import TRASHED, slug_of
from service.store import tree
from service.store.client import Client, Collection, Database
from service.store.copies import Copies, in_background, is_copied
from service.store.ids import Ids
from service.store.links import Links, New, name_key
from service.store.passwords import Passwords
from service.store.slugs import free_slug
from service.store.usage import Usage, changed_uses, note, unused
from service.store.words import Words

Ref = int | str
TRIES = 100
PATIENCE = 2.0
"""Seconds that a request waits for events to follow; more is done behind it."""
PRIVATE = {"tok": 0, "text": 0, "sort": 0, "owes": 0}


class Records:
    """The one path that every kind of record takes."""

    def __init__(self, client: Client, database: Database, site: Site) -> None:
        self.client = client
        self.database = database
        self.site = site
        self.ids = Ids(database)
        self.words = Words(database)
        self.usage = Usage(database)
        self.copies = Copies(database, site)
        self.passwords = Passwords()
        self._links = Links(database, site, self._prepare)
        self._tasks: set[asyncio.Task[None]] = set()

    def _collection(self, kind: Kind) -> Collection:
        return self.database[kind.plural]

    # Reading

    async def find(self, kind: Kind, ref: Ref) -> Document:
        query = {"_id": ref} if isinstance(ref, int) else {"slug": ref}
        record = await self._collection(kind).find_one(query, PRIVATE)
        if record is None:
            raise NotFound(kind=kind.name)
        return record

    async def read(self, kind: Kind, ref: Ref, caller: Caller, password: str | None) -> Document:
        record = await self.find(kind, ref)
        if record.get("status") == "trash":
            raise Trashed(kind=kind.name)
        if not caller.sees(record):
            raise NotAccessible(kind=kind.name)
        await self.passwords.check(record, caller, password)
        return record

    # Creating

    async def create(self, kind: Kind, data: Document, caller: Caller) -> Document:
        for _ in range(TRIES):
            record = await self._prepare(kind, data, caller)
            # Somebody may take the slug, or make the term, in between: the next try sees theirs.
            with suppress(DuplicateKeyError):
                return await self._insert(kind, record, data, caller)
        raise Unavailable

    async def _prepare(self, kind: Kind, data: Document, caller: Caller) -> Document:
        """The document of a new record: settled, named, numbered; not stored yet."""
        record = kind.settle(self._allowed(kind, data, caller, None), None, self.site)
        if kind.is_post:
            record.setdefault("author", caller.id)
        else:
            record |= await tree.settle_new(self.database, kind, record)
        now = self.site.now()
        wished = slug_of(data.get("slug") or "", "") or slug_of(record[kind.title], kind.name)
        record |= unused(kind) | {"version": 1, "modified_utc": now}
        record["slug"] = await free_slug(self._collection(kind), wished)
        if kind is EVENT:
            record.pop("new_password", None)
            record["password"] = await self.passwords.hash(data.get("password"))
        record |= await self.words.searchable(kind, record)
        return {"_id": await self.ids.next(kind.ids), **record}

    async def _insert(self, kind: Kind, record: Document, data: Document, caller: Caller) -> Document:
        if kind is not EVENT:
            await self._collection(kind).insert_one(record)
            return record
        await self._check_parent(record)
        links, new = await self._links.resolve({name: data.get(name) for name in kind.links}, caller)
        record |= links
        changes = changed_uses(None, record)
        if debt := note(changes, 1, record["modified_utc"]):
            record["owes"] = [debt]
        await self._store_together([*new, (kind, record)])
        await self._after_event(record, changes)
        return await self.find(kind, record["_id"]) if await self.copies.refresh(record) else record

    async def _store_together(self, new: list[New]) -> None:
        """All or nothing: one record as it is, several in a transaction."""
        if len(new) == 1:
            await self._collection(new[0][0]).insert_one(new[0][1])
            return

        async def insert(session: Any) -> None:
            for kind, record in new:
                await self._collection(kind).insert_one(record, session=session)

        async with await self.client.start_session() as session:
            await session.with_transaction(insert)

    async def _after_event(self, event: Mapping[str, Any], changes: Any) -> None:
        await self.usage.apply(event["_id"], event["version"], changes)

    # Changing

    async def update(
        self,
        kind: Kind,
        ref: Ref,
        data: Document,
        caller: Caller,
        password: str | None = None,
        versions: frozenset[int] | None = None,
    ) -> Document:
        for _ in range(TRIES):
            stored = await self.find(kind, ref)
            await self._may_change(stored, caller, password, versions)
            try:
                if changed := await self._change(kind, stored, data, caller):
                    return changed
            except DuplicateKeyError:
                if not kind.is_post:
                    raise DuplicateTermSlug from None
        raise Unavailable

    async def _may_change(
        self, stored: Document, caller: Caller, password: str | None, versions: frozenset[int] | None
    ) -> None:
        if not caller.may_write(stored):
            raise Forbidden
        await self.passwords.check(stored, caller, password)
        if versions is not None and stored["version"] not in versions:
            raise PreconditionFailed

    async def _change(self, kind: Kind, stored: Document, data: Document, caller: Caller) -> Document | None:
        """One attempt; None where the record has changed in the meantime."""
        settled = kind.settle(self._allowed(kind, data, caller, stored), stored, self.site)
        new: list[New] = []
        if kind is EVENT:
            await self._check_parent(settled, stored["_id"])
            links, new = await self._links.resolve({n: data[n] for n in kind.links if n in data}, caller)
            settled |= links
            settled.pop("password", None)
            if "new_password" in settled:
                settled["password"] = await self.passwords.hash(settled.pop("new_password"))
        if slug := await self._new_slug(kind, stored, settled, data):
            settled["slug"] = slug
        else:
            settled.pop("slug", None)
        if not settled:
            return stored
        if any(name in kind.searched for name in settled):
            settled |= await self.words.searchable(kind, stored | settled)
        if kind.title in settled and not kind.is_post:
            settled["key"] = name_key(settled["name"])
        settled["modified_utc"] = self.site.now()
        return await self._save(kind, stored, settled, new)

    async def _save(self, kind: Kind, stored: Document, settled: Document, new: list[New]) -> Document | None:
        changes = changed_uses(stored, stored | settled) if kind is EVENT else {}
        change: Document = {"$set": settled, "$inc": {"version": 1}}
        if debt := note(changes, stored["version"] + 1, settled["modified_utc"]):
            change["$push"] = {"owes": debt}
        follows = kind is not EVENT and any(is_copied(kind, name) for name in settled)
        chore = await self.copies.announce(kind, stored["_id"]) if follows else None
        saved = await self._store_change(kind, stored, change, new)
        if saved is None:
            return None
        if changes:
            await self._after_event(saved, changes)
        if chore:
            await self._soon(self.copies.follow(chore))
        if kind is EVENT and any(name in settled for name in kind.links) and await self.copies.refresh(saved):
            return await self.find(kind, saved["_id"])
        return saved

    async def _store_change(
        self, kind: Kind, stored: Document, change: Document, new: list[New]
    ) -> Document | None:
        query = {"_id": stored["_id"], "version": stored["version"]}
        parent = change["$set"].get("parent", stored.get("parent"))
        moves = parent != stored.get("parent")

        async def write(session: Any = None) -> Document | None:
            for other, record in new:
                await self._collection(other).insert_one(record, session=session)
            if moves:
                change["$set"]["ancestors"] = await tree.move(self.database, kind, stored, parent, session)
            return await self._collection(kind).find_one_and_update(
                query, change, PRIVATE, return_document=ReturnDocument.AFTER, session=session
            )

        if not new and not moves:
            return await write()
        await tree.ensure_lock(self.database)
        async with await self.client.start_session() as session:
            saved: Document | None = await session.with_transaction(write)
            return saved

    async def _soon(self, work: Any) -> None:
        """Waits a little for work that may be long; it goes on by itself."""
        task = asyncio.ensure_future(work)
        in_background(self._tasks, task)
        await asyncio.wait({task}, timeout=PATIENCE)

    async def _new_slug(self, kind: Kind, stored: Document, settled: Document, data: Document) -> str | None:
        """The slug after the change, or None where it stays."""
        base = stored["slug"].removesuffix(TRASHED) if stored.get("status") == "trash" else stored["slug"]
        wished = slug_of(data.get("slug") or "", base)
        if settled.get("status", stored.get("status")) == "trash":
            wished = base + TRASHED if stored.get("status") != "trash" else stored["slug"]
        if wished == stored["slug"]:
            return None
        if not kind.is_post:
            return wished
        return await free_slug(self._collection(kind), wished, stored["_id"])

    def _allowed(self, kind: Kind, data: Document, caller: Caller, stored: Document | None) -> Document:
        """The data as the caller's role lets it count."""
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

    async def _check_parent(self, record: Mapping[str, Any], own: int | None = None) -> None:
        parent = record.get("post_parent")
        if parent and (
            parent == own or not await self.database["events"].find_one({"_id": parent}, {"_id": 1})
        ):
            raise InvalidFields({"post_parent": Text("There is no such other event.")})

    async def publish(self, kind: Kind, id: int) -> None:
        """What waited for its date becomes public."""
        system = Caller(role=Role.ADMIN, unlocks=True)
        await self.update(kind, id, {"status": "publish"}, system)

    # Deleting

    async def delete(
        self,
        kind: Kind,
        ref: Ref,
        caller: Caller,
        password: str | None = None,
        versions: frozenset[int] | None = None,
    ) -> Document:
        stored = await self.find(kind, ref)
        if stored.get("status") == "trash" and caller.may_write(stored):
            raise Trashed(kind=kind.name)
        if kind.is_post:
            return await self.update(kind, stored["_id"], {"status": "trash"}, caller, password, versions)
        await self._may_change(stored, caller, password, versions)
        return await self._remove(kind, stored)

    async def _remove(self, kind: Kind, stored: Document) -> Document:
        """Terms go for good: events lose them, and children move up."""
        chore = await self.copies.announce(kind, stored["_id"])
        moved = await tree.remove(self.client, self.database, kind, stored)
        for child in moved:
            await self._soon(self.copies.follow(await self.copies.announce(kind, child)))
        await self._soon(self.copies.follow(chore))
        return stored
