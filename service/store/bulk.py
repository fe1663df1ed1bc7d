"""Many new records at once, by the same path as one."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pymongo
from bson import Binary
from pymongo.errors import PyMongoError

from schemas import KINDS
from schemas.caller import Caller
from schemas.errors import Problem, TermExists, Unavailable
from schemas.event import EVENT
from schemas.kind import Document, Kind
from service.store.client import Database
from service.store.records import TRIES, Records, wished_slug
from service.store.shared_links import MOST, SharedLinks
from service.store.together import PATIENCE, Conflict, Unstorable, store_together

log = logging.getLogger("kalends.store")
BY_PLURAL = {kind.plural: kind for kind in KINDS}


@dataclass(frozen=True)
class Row:
    """What a line says, and the mark that no other line has."""

    number: int
    mark: bytes
    data: Document


@dataclass
class Outcome:
    """What has become of lines: how many were stored, and were there already; those refused, and why."""

    imported: int = 0
    there: int = 0
    refused: dict[int, Problem] = field(default_factory=dict)

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(self.imported + other.imported, self.there + other.there, self.refused | other.refused)


class Bulk(Records):
    """Creates records of one kind, batch by batch."""

    def __init__(self, store: Records, kind: Kind, caller: Caller, session: Any) -> None:
        super().__init__(store.client, store.database, store.site)
        self.ids, self.words, self.passwords = store.ids, store.words, store.passwords
        self.kind, self._caller, self._session = kind, caller, session
        self._last_slugs: dict[str, int] = {}
        self._shared = self._links = SharedLinks(self.database, self.site, self._prepare_linked)

    async def store(self, rows: Sequence[Row], tries: int = TRIES) -> Outcome:
        """Stores what is not there yet; by halves, where another writer came in between."""
        try:
            return await self._store_new(rows)
        except Unstorable:
            tries = 0
        except Conflict:
            self._forget()
        if len(rows) > 1:
            half = len(rows) // 2
            return await self.store(rows[:half]) + await self.store(rows[half:])
        if tries:
            return await self.store(rows, tries - 1)
        return Outcome(refused={rows[0].number: Unavailable()})

    def _forget(self) -> None:
        """Somebody has changed what is remembered."""
        self._shared.forget()
        self._last_slugs.clear()

    async def known(self, marks: Iterable[bytes]) -> set[bytes]:
        """The marks of lines that were imported before."""
        rows = self.database["imports"].find({"_id": {"$in": list(marks)}}, {"_id": 1})
        return {bytes(row["_id"]) async for row in rows}

    async def _store_new(self, rows: Sequence[Row]) -> Outcome:
        known = await self.known(row.mark for row in rows)
        fresh = [row for row in rows if row.mark not in known]
        if len(self._last_slugs) > MOST:
            self._last_slugs.clear()
        await self._shared.begin([row.data for row in fresh], self._caller)
        made, refused = await self._settle_all(fresh)
        if made:
            with pymongo.timeout(PATIENCE):
                await self._name_all(made)
                marks = [{"_id": Binary(row.mark), "record": record["_id"]} for row, record in made]
                records = [record for _, record in made]
                await store_together(
                    self._session,
                    self.database,
                    self.counts.debts,
                    self.kind,
                    records,
                    [*self._linked().items(), ("imports", marks)],
                )
            await self._count_soon()
        return Outcome(len(made), len(known), refused)

    async def _count_soon(self) -> None:
        """What is stored is stored: it will be counted by whoever needs it, if not now."""
        try:
            await self.counts.catch_up()
        except PyMongoError as error:
            log.warning("left for the next sweep: %s", error)

    async def _settle_all(self, rows: Iterable[Row]) -> tuple[list[tuple[Row, Document]], dict[int, Problem]]:
        made: list[tuple[Row, Document]] = []
        refused: dict[int, Problem] = {}
        claims: set[str] = set()
        for row in rows:
            try:
                record = await self._settle_row(row.data)
                if record.get("claim") in claims:
                    raise TermExists
            except Problem as problem:
                refused[row.number] = problem
            else:
                claims |= {record["claim"]} if "claim" in record else set()
                made.append((row, record))
        return made, refused

    async def _settle_row(self, data: Document) -> Document:
        if self.kind is not EVENT:
            return await self._settle_new(self.kind, data, self._caller)
        hashed = {"password": await self.passwords.hash(data.get("password"))}
        record = await self._settle_new(self.kind, data | hashed, self._caller)
        await self._check_parent(record, self._caller)
        sent = {name: data.get(name) for name in self.kind.links}
        try:
            links, new = await self._shared.resolve(sent, self._caller)
        except TermExists:  # made by another process since it was looked for
            raise Conflict from None
        self._shared.keep(new)
        return record | links

    async def _name_all(self, made: Sequence[tuple[Row, Document]]) -> None:
        """What tells the records apart: slugs, words and ids, each asked for once."""
        kind, records = self.kind, [record for _, record in made]
        wished = [wished_slug(kind, row.data) for row, _ in made]
        slugs = await self.slugs.free_for_all(kind.plural, wished, self._last_slugs)
        ids = await self.ids.many(kind.ids, len(records))
        for record, slug, id in zip(records, slugs, ids, strict=True):
            record.update(slug=slug, _id=id)
        for plural, many in [(kind.plural, records), *self._linked().items()]:
            found = await self.words.all_searchable(BY_PLURAL[plural], many)
            for record, searchable in zip(many, found, strict=True):
                record.update(searchable)

    async def _prepare_linked(
        self, kind: Kind, data: Document, caller: Caller, taken: frozenset[str] | set[str] = frozenset()
    ) -> Document:
        """A new record to link to. Its words wait for those of the batch."""
        slug = await self.slugs.free(kind.plural, wished_slug(kind, data), taken=taken)
        record = await self._settle_new(kind, data, caller)
        return record | {"_id": await self.ids.next(kind.ids), "slug": slug}

    def _linked(self) -> dict[str, list[Document]]:
        """Plural of a kind -> the records of it that this batch makes to link to."""
        new: defaultdict[str, list[Document]] = defaultdict(list)
        for kind, record in self._shared.new:
            new[kind.plural].append(record)
        return new


@asynccontextmanager
async def bulk(store: Records, kind: Kind, caller: Caller) -> AsyncIterator[Bulk]:
    """A way to store many records; it first ends the transactions that killed imports have left open."""
    await _end_leftovers(store.database)
    async with await store.client.start_session() as session:
        own: Any = session.session_id
        note = {"_id": own["id"]}
        await store.database["importers"].insert_one(note)
        yield Bulk(store, kind, caller, session)
        await store.database["importers"].delete_one(note)


async def _end_leftovers(database: Database) -> None:
    """MongoDB would keep them, and what they have locked, for a minute. An import that is alive, and loses
    its transaction here, begins it anew."""
    async for note in database["importers"].find():
        await database.command("killSessions", [{"id": note["_id"]}])
        await database["importers"].delete_one(note)
