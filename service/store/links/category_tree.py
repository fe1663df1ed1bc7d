"""The category tree: each category stores all its ancestors, and cycles are refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, TypeVar

from schemas.errors import InvalidFields, NotFound, PreconditionFailed, TermExists, not_found
from schemas.kind import Document, Kind
from schemas.kinds.parents import CYCLE
from schemas.link_refs import name_key
from schemas.preconditions import Versions
from schemas.site import Site
from service.changes.change import REMOVED_TERMS
from service.changes.feed import ChangeFeed
from service.mongo.bulk_writes import Update, update_one
from service.mongo.client import Database, Session, find, in_transaction
from service.store.links.copies import new_version
from service.store.links.fanout import Fanout

LOCK = {"_id": "category-tree"}
Key = TypeVar("Key")
Result = TypeVar("Result")
Work = Callable[[Session], Coroutine[Any, Any, Result]]
"""Part of a transaction."""


def term_fields(record: Mapping[str, Any]) -> Document:
    """Derived fields of a new term. Without a slug of its own, its name must be new under its parent: a
    unique index on `claim` refuses a second one."""
    parent, key = record.get("parent") or 0, name_key(record["name"])
    claim = {} if record.get("slug") else {"claim": f"{parent}:{key}"}
    return {"key": key, "parent": parent, "ancestors": [], **claim}


async def refuse_existing_terms(
    database: Database, feed: ChangeFeed, kind: Kind, terms: dict[Key, Document]
) -> dict[Key, Exception]:
    """Remove new terms whose name exists under the same parent, and return an error for each. Of several new
    ones with the same name, all but the first are removed without an error: they are to be tried again."""
    claimed = [term for term in terms.values() if "claim" in term]
    names = [{"key": term["key"], "parent": term["parent"]} for term in claimed]
    named = partial(find, database[kind.plural], {"$or": names}, {"key": 1, "parent": 1})
    rows = sorted(await feed.confirm(named) if names else [], key=lambda row: -row["_id"])
    ids = {f"{row['parent']}:{row['key']}": row["_id"] for row in rows}
    firsts = {term["claim"]: term for term in reversed(claimed)}
    twins = {key: ids[term["claim"]] for key, term in terms.items() if term.get("claim") in ids}
    for key, term in list(terms.items()):
        if key in twins or firsts.get(term.get("claim"), term) is not term:
            del terms[key]
    return {key: TermExists(term_id=id) for key, id in twins.items()}


class CategoryTree:
    """Changes the tree. There is one lock for all of it: such changes are rare, and two that are valid by
    themselves can create a cycle together."""

    def __init__(self, database: Database, site: Site, fanout: Fanout) -> None:
        self._database, self._site, self._fanout = database, site, fanout
        self._lock = asyncio.Lock()
        """Changes by this process queue: transactions that conflict are repeated at once, and many of them
        would keep each other from ending."""

    async def move(self, kind: Kind, update: Update) -> list[Document]:
        """Update a category whose parent changes, and add its ancestors to the change; return its fan-out
        job. Raises NoMatch."""
        terms, own, fields = self._database[kind.plural], update.query["_id"], update.change["$set"]

        async def work(session: Session) -> list[Document]:
            fields["ancestors"] = above = await self.ancestors(kind, fields["parent"], session)
            if own in above:
                raise InvalidFields({"parent": CYCLE})
            await update_one(terms, update, session)
            async for below in terms.find({"ancestors": own}, {"ancestors": 1}, session=session):
                kept = below["ancestors"][below["ancestors"].index(own) :]
                await terms.update_one(
                    {"_id": below["_id"]}, {"$set": {"ancestors": above + kept}}, session=session
                )
            return await self._fanout.enqueue(kind, [own], session)

        return await self.locked(work)

    async def remove(self, kind: Kind, own: int, versions: Versions) -> list[Document]:
        """Delete a term and move its children to its parent; return the fan-out jobs."""
        terms = self._database[kind.plural]
        query = {"_id": own} | ({} if versions is None else {"version": {"$in": list(versions)}})

        async def work(session: Session) -> list[Document]:
            gone = await terms.find_one_and_delete(query, {"parent": 1}, session=session)
            if gone is None:
                left = await terms.find_one({"_id": own}, {"_id": 1}, session=session)
                raise PreconditionFailed if left else NotFound(kind=kind.name)
            now = self._site.now()
            gone_terms = self._database[REMOVED_TERMS]
            await gone_terms.delete_one({"_id": own}, session=session)
            await gone_terms.insert_one({"_id": own, "kind": kind.plural, "at": now}, session=session)
            children = [row["_id"] async for row in terms.find({"parent": own}, {"_id": 1}, session=session)]
            moved = new_version({"parent": gone["parent"]}, now)
            await terms.update_many({"parent": own}, moved, session=session)
            await terms.update_many({"ancestors": own}, {"$pull": {"ancestors": own}}, session=session)
            return await self._fanout.enqueue(kind, [*children, own], session)

        return await self.locked(work)

    async def locked(self, work: Work[Result]) -> Result:
        """Run the work in a transaction that excludes other changes to the tree."""
        locks = self._database["counters"]

        async def work_with_lock(session: Session) -> Result:
            await locks.update_one(LOCK, {"$inc": {"n": 1}}, session=session)
            return await work(session)

        # Outside the transaction: an upsert inside one can violate a unique index on old servers.
        await locks.update_one(LOCK, {"$setOnInsert": {"n": 0}}, upsert=True)
        async with self._lock:
            return await in_transaction(self._database, work_with_lock)

    async def ancestors(self, kind: Kind, parent: int, session: Session) -> list[int]:
        """The ancestors of a category below this parent; raises InvalidFields if there is none."""
        if not parent:
            return []
        found = await self._database[kind.plural].find_one({"_id": parent}, {"ancestors": 1}, session=session)
        if found is None:
            raise InvalidFields({"parent": not_found(kind.name)})
        return [*found["ancestors"], parent]
