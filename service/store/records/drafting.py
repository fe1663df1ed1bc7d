"""Prepares a batch of new records for storing, with one query for each thing that they need."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pymongo.errors import DuplicateKeyError

from schemas import BY_PLURAL
from schemas.caller import Caller
from schemas.errors import InvalidFields, Problem, TermExists
from schemas.event import EVENT
from schemas.kind import Document, Kind
from service.store.records.reading import Records, desired_slug
from service.store.shared_links import MOST, SharedLinks


@dataclass(frozen=True)
class Row:
    """The data of an input line, and the unique digest of the line."""

    number: int
    mark: bytes
    data: Document


Made = tuple[Row, Document]


class Conflict(Exception):
    """Another writer has changed what a batch was built from."""


class Drafts(Records):
    """Prepares records of one kind, batch by batch."""

    def __init__(self, store: Records, kind: Kind, caller: Caller) -> None:
        super().__init__(store.client, store.database, store.site)
        self.ids, self.vocabulary, self.passwords = store.ids, store.vocabulary, store.passwords
        self.kind, self._caller = kind, caller
        self._last_slugs: dict[str, int] = {}
        self._shared = self._links = SharedLinks(self.database, self.site, self._prepare_linked)

    def _forget(self) -> None:
        """Clear the caches, after another writer has changed what they hold."""
        self._shared.forget()
        self._last_slugs.clear()

    async def _prepare_all(self, rows: Sequence[Row]) -> tuple[list[Made], dict[int, Problem]]:
        """Build records from rows and store new linked ones; return the records and errors by row number."""
        if len(self._last_slugs) > MOST:
            self._last_slugs.clear()
        await self._shared.begin([row.data for row in rows])
        made, refused = await self._settle_all(rows)
        await self._name_all(made)
        for plural, records in self._linked().items():
            for error in (await self._inserts.many(plural, records)).values():
                raise Conflict if isinstance(error, DuplicateKeyError) else error
        return made, refused

    async def _settle_all(self, rows: Iterable[Row]) -> tuple[list[Made], dict[int, Problem]]:
        made: list[Made] = []
        refused: dict[int, Problem] = {}
        claims: set[str] = set()
        for row in rows:
            try:
                record = await self._settle_row(row.data)
                if record.get("claim") in claims:
                    raise TermExists
            except InvalidFields as problem:
                others = await self._problems(self.kind, row.data, self._caller)
                refused[row.number] = InvalidFields(problem.params | others)
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
            linked = await self._shared.resolve(sent, self._caller)
        except TermExists:  # created by another process after the look-up
            raise Conflict from None
        self._shared.keep(linked.new)
        return record | linked.copies

    async def _name_all(self, made: Sequence[Made]) -> None:
        """Assign slugs, ids and search fields, each with one look-up for the batch."""
        kind, records = self.kind, [record for _, record in made]
        desired = [desired_slug(kind, row.data) for row, _ in made]
        slugs = await self.slugs.free_for_all(kind.plural, desired, self._last_slugs)
        ids = await self.ids.many(kind.id_space, len(records))
        for record, slug, id in zip(records, slugs, ids, strict=True):
            record.update(slug=slug, _id=id)
        for plural, many in [(kind.plural, records), *self._linked().items()]:
            found = await self.vocabulary.all_searchable(BY_PLURAL[plural], many)
            for record, searchable in zip(many, found, strict=True):
                record.update(searchable)

    async def _prepare(self, kind: Kind, data: Document, caller: Caller, slug: str) -> Document:
        """Build a new linked record; it gets its search fields with the rest of the batch."""
        record = await self._settle_new(kind, data, caller)
        return record | {"_id": await self.ids.next(kind.id_space), "slug": slug}

    def _linked(self) -> dict[str, list[Document]]:
        """Plural of a kind -> the linked records of it that this batch creates."""
        new: defaultdict[str, list[Document]] = defaultdict(list)
        for kind, record in self._shared.new:
            new[kind.plural].append(record)
        return new
