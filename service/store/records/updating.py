"""Updating, publishing and deleting one record, the same way for every kind."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from pymongo.errors import DuplicateKeyError

from schemas.caller import Caller, Role
from schemas.errors import (
    DuplicateTermSlug,
    Forbidden,
    InvalidFields,
    PreconditionFailed,
    Problems,
    TermExists,
    Trashed,
    Unavailable,
)
from schemas.event import EVENT
from schemas.event_representation import LINKED, is_locked, visible_copies
from schemas.kind import Document, Kind
from schemas.slugs import TRASHED_SUFFIX, slug_of
from service.store.debts import Debt
from service.store.event_changes import telling
from service.store.links import category_tree
from service.store.links.fanout import in_background, is_copied
from service.store.links.references import name_key
from service.store.links.resolving import New
from service.store.links.usage import changed_uses
from service.store.mongo.loaders import HIDDEN_FIELDS, Ref
from service.store.records.reading import NO_PROBLEMS, TRIES, Records

PATIENCE = 2.0
"""Seconds that a request waits for the fan-out to events; the rest runs in the background."""


class Saved(NamedTuple):
    """An updated record, its fan-out job if events embed it, and whether its own links have changed."""

    record: Document
    job: Document | None = None
    is_linked: bool = False


class Changes(Records):
    """Updates and deletes records, with optimistic locking."""

    async def update(
        self,
        kind: Kind,
        ref: Ref,
        data: Document,
        caller: Caller,
        password: str | None = None,
        versions: frozenset[int] | None = None,
        problems: Problems = NO_PROBLEMS,
        check: Callable[[Document], None] = lambda stored: None,
    ) -> Document:
        """Update a record; raises InvalidFields with all invalid values, including those in `problems`."""
        try:
            problems.refuse()
            return await self._update(kind, ref, data, caller, password, versions, check)
        except InvalidFields as refused:
            stored = await self._wholes.load(kind.plural, ref)
            # Messages must not reveal stored values that are protected or not the caller's to edit.
            own = stored if stored and caller.may_write(stored) and not is_locked(stored) else None
            raise InvalidFields(refused.params | await self._problems(kind, data, caller, own)) from None

    async def _update(
        self,
        kind: Kind,
        ref: Ref,
        data: Document,
        caller: Caller,
        password: str | None,
        versions: frozenset[int] | None,
        check: Callable[[Document], None],
    ) -> Document:
        async with self._turns.setdefault((kind.plural, ref), asyncio.Lock()):
            for _ in range(TRIES):  # another process may change it meanwhile
                stored = await self.find(kind, ref)
                check(stored)
                await self._may_change(stored, caller, password, versions)
                try:
                    if saved := await self._change(kind, stored, data, caller):
                        break
                except (DuplicateKeyError, TermExists):
                    if not kind.is_post:
                        raise DuplicateTermSlug from None
            else:
                raise Unavailable
        return await self._finish(saved)

    async def _may_change(
        self, stored: Document, caller: Caller, password: str | None, versions: frozenset[int] | None
    ) -> None:
        if not caller.may_write(stored):
            raise Forbidden
        await self.passwords.check(stored, caller, password)
        if versions is not None and stored["version"] not in versions:
            raise PreconditionFailed

    async def _change(self, kind: Kind, stored: Document, data: Document, caller: Caller) -> Saved | None:
        """One attempt; None if the record has changed meanwhile."""
        settled = kind.normalize(self._allowed(kind, data, caller, stored), stored, self.site)
        new: list[New] = []
        if kind is EVENT:
            await self._check_parent(settled, caller, stored)
            linked = await self._links.resolve({n: data[n] for n in kind.links if n in data}, caller)
            settled |= linked.copies
            new = linked.new
            settled.pop("password", None)
            if "new_password" in settled:
                settled["password"] = await self.passwords.hash(settled.pop("new_password"))
                settled["locked"] = is_locked(settled)
        if slug := await self._new_slug(kind, stored, settled, data):
            settled["slug"] = slug
        else:
            settled.pop("slug", None)
        if not (settled := changed(kind, stored, settled, caller)):
            return Saved(stored)
        if any(name in kind.search_fields for name in settled):
            settled |= await self.vocabulary.searchable(kind, stored | settled)
        if kind.name_field in settled and not kind.is_post:
            settled["key"] = name_key(settled["name"])
        settled["modified_utc"] = self.site.now()
        return await self._save(kind, stored, settled, new)

    async def _save(self, kind: Kind, stored: Document, settled: Document, new: list[New]) -> Saved | None:
        changes = changed_uses(stored, stored | settled) if kind is EVENT else {}
        change: Document = {"$set": settled, "$inc": {"version": 1}}
        debt = Debt(stored["_id"], stored["version"] + 1, changes, stored.get("debt"))
        if changes:
            settled["debt"] = debt.mark
        if "key" in settled or "parent" in settled:
            # Release the claim on the name that was made at creation.
            change["$unset"] = {"claim": ""}
        follows = any(is_copied(kind, name) for name in settled)
        job = await self.fanout.enqueue(kind, stored["_id"]) if follows else None
        if kind is EVENT:
            settled |= telling(stored, stored | settled)
        async with self.counts.debts.noted(debt):
            saved = await self._store_change(kind, stored, change, new)
        return Saved(saved, job, any(name in settled for name in kind.links)) if saved else None

    async def _finish(self, saved: Saved) -> Document:
        """Run the fan-out and check embedded copies; the lock on the record is released already."""
        if saved.job:
            await self._soon(self.fanout.run(saved.job))
        return await self._after_event(saved.record) if saved.is_linked else saved.record

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
                change["$set"]["ancestors"] = await category_tree.move(
                    self.database, kind, stored, parent, session
                )
            done = await self._collection(kind).update_one(query, change, session=session)
            if done.matched_count:
                return after(stored, change)
            if session is not None:
                await session.abort_transaction()
            return None

        if not new and not moves:
            return await write()
        await category_tree.ensure_lock(self.database)
        async with await self.client.start_session() as session:
            saved: Document | None = await session.with_transaction(write)
            return saved

    async def _soon(self, work: Any) -> None:
        """Run work in the background, but wait a little for it to finish."""
        task = asyncio.ensure_future(work)
        in_background(self._tasks, task)
        await asyncio.wait({task}, timeout=PATIENCE)

    async def _new_slug(self, kind: Kind, stored: Document, settled: Document, data: Document) -> str | None:
        """The slug after the change; None if it stays the same."""
        base = stored["slug"]
        if stored.get("status") == "trash":
            base = re.sub(rf"{TRASHED_SUFFIX}(-\d+)?$", "", base)
        desired = slug_of(data.get("slug") or "", base)
        if settled.get("status", stored.get("status")) == "trash":
            desired = base + TRASHED_SUFFIX if stored.get("status") != "trash" else stored["slug"]
        if desired == stored["slug"]:
            return None
        if not kind.is_post:
            return desired
        return await self.slugs.free(kind.plural, desired, stored["_id"])

    async def publish(self, kind: Kind, id: int) -> None:
        """Publish a scheduled record, unless its status has changed meanwhile."""
        system = Caller(role=Role.ADMIN, bypasses_passwords=True)

        def still_waits(stored: Document) -> None:
            if stored["status"] != "future":
                raise PreconditionFailed

        with suppress(PreconditionFailed):
            await self.update(kind, id, {"status": "publish"}, system, check=still_waits)

    async def delete(
        self,
        kind: Kind,
        ref: Ref,
        caller: Caller,
        password: str | None = None,
        versions: frozenset[int] | None = None,
    ) -> Document:
        def is_there(stored: Document) -> None:
            if stored.get("status") == "trash" and caller.may_write(stored):
                raise Trashed(kind=kind.name)

        stored = await self.find(kind, ref)
        if kind.is_post:
            trash = {"status": "trash"}
            return await self.update(kind, stored["_id"], trash, caller, password, versions, check=is_there)
        await self._may_change(stored, caller, password, versions)
        return await self._remove(kind, stored, versions)

    async def _remove(self, kind: Kind, stored: Document, versions: frozenset[int] | None) -> Document:
        """Delete a term permanently: it is removed from events, and its children move to its parent."""
        job = await self.fanout.enqueue(kind, stored["_id"])
        async for child in self._collection(kind).find({"parent": stored["_id"]}, {"_id": 1}):
            await self.fanout.enqueue(kind, child["_id"])
        moved = await category_tree.remove(self.client, self.database, kind, stored["_id"], versions)
        for child in moved:
            await self._soon(self.fanout.run(await self.fanout.enqueue(kind, child)))
        await self._soon(self.fanout.run(job))
        return stored


def changed(kind: Kind, stored: Document, settled: Document, caller: Caller) -> Document:
    """The fields that differ from the stored record. Links sent back as the caller sees them do not count."""
    return {
        name: value
        for name, value in settled.items()
        if value != stored.get(name) and not (name in kind.links and are_shown(name, value, stored, caller))
    }


def are_shown(field: str, copies: list[Document], stored: Document, caller: Caller) -> bool:
    """Whether these are the links that the caller sees in the event; for posts the order counts."""
    sent, shown = ([copy["_id"] for copy in many] for many in (copies, visible_copies(field, stored, caller)))
    return sent == shown if LINKED[field].is_post else set(sent) == set(shown)


def after(stored: Document, change: Document) -> Document:
    """The record after an update, computed locally: for find_one_and_update the server would store a second
    copy of the document, in case the driver retries the write."""
    gone = HIDDEN_FIELDS.keys() | change.get("$unset", {}).keys()
    now = stored | change["$set"] | {"version": stored["version"] + change["$inc"]["version"]}
    return {name: value for name, value in now.items() if name not in gone}
