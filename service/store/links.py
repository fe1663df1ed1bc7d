"""Links of an event: finding what is meant, and preparing what has to be created with it."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import bson

from schemas.caller import Caller, Role
from schemas.errors import InvalidFields
from schemas.event_view import LINKED
from schemas.kind import Kind
from schemas.language import Text
from schemas.site import Site
from service.store.client import Database
from service.store.copies import copy_of
from service.store.lookups import PRIVATE, Lookup

New = tuple[Kind, dict[str, Any]]
Known = dict[tuple[str, int], dict[str, Any]]
FEW = 16
"""Copies that cannot be too large together."""
LARGEST = 8_000_000
"""Bytes of copies that an event may carry; a document of MongoDB ends at 16 MiB."""


class Maker(Protocol):
    """Prepares a record of a kind from its input, without storing it."""

    async def __call__(
        self, kind: Kind, data: dict[str, Any], caller: Caller, taken: set[str]
    ) -> dict[str, Any]: ...


class Links:
    """Turns what a client sent for a link into copies of records, found or new."""

    def __init__(self, database: Database, site: Site, make: Maker) -> None:
        self._database = database
        self._site = site
        self._make = make
        self._records = Lookup(database, PRIVATE)

    async def resolve(self, data: Mapping[str, Any], caller: Caller) -> tuple[dict[str, Any], list[New]]:
        """The copies to embed for every link field sent, and the records to create with the event."""
        copies: dict[str, Any] = {}
        new: list[New] = []
        wrong: dict[str, str] = {}
        known = await self._by_id(linked_ids(data), caller)
        for field, kind in LINKED.items():
            if field in data:
                found, made, problem = await self._field(kind, data[field] or [], known, caller)
                copies[field] = [copy_of(kind, record) for record in found]
                new += made
                wrong |= {field: problem} if problem else {}
        if sum(map(len, copies.values())) > FEW and len(bson.encode(copies)) > LARGEST:
            wrong = dict.fromkeys(copies, Text("What is linked is too large to be kept with the event."))
        if wrong:
            raise InvalidFields(wrong)
        return copies, new

    async def _field(
        self, kind: Kind, links: list[Any], known: Known, caller: Caller
    ) -> tuple[list[dict[str, Any]], list[New], Text | None]:
        records: dict[int, dict[str, Any]] = {}
        new: list[New] = []
        for link in links:
            is_id = isinstance(link, int)
            record = known.get((kind.plural, link)) if is_id else await self._found(kind, link)
            if record is None and isinstance(link, str):
                record = next(
                    (made for _, made in new if name_key(link) in (made["key"], made["slug"])), None
                )
            if record is None and isinstance(link, int):
                return [], [], Text("There is no {kind} with the ID {id}.", kind=kind.name, id=link)
            if record is None and not kind.is_post and caller.role is Role.CONTRIBUTOR:
                return [], [], Text("There is no {kind} {name}.", kind=kind.name, name=repr(link))
            if record is None:
                data = {"name": link} if isinstance(link, str) else link
                record = await self._make(kind, data, caller, {one["slug"] for _, one in new})
                new.append((kind, record))
            records.setdefault(record["_id"], record)
        return list(records.values()), new, None

    async def _by_id(self, asked: Sequence[tuple[str, int]], caller: Caller) -> Known:
        """Records by id; one that the caller may not see is as unknown as one that is not there."""
        found = await self._records.many(asked)
        return {link: found[link] for link in asked if link in found and caller.sees(found[link])}

    async def _found(self, kind: Kind, link: Any) -> dict[str, Any] | None:
        if isinstance(link, str):
            return await find_term(self._database, kind, link)
        wanted = described(kind, link, self._site)
        return wanted and await self._database[kind.plural].find_one(wanted, sort=[("_id", 1)])


def linked_ids(data: Mapping[str, Any]) -> list[tuple[str, int]]:
    """(plural of a kind, id) of what an event's data links to by id."""
    links = [(kind.plural, link) for field, kind in LINKED.items() for link in data.get(field) or ()]
    return [link for link in links if isinstance(link[1], int)]


def described(kind: Kind, link: Mapping[str, Any], site: Site) -> dict[str, Any] | None:
    """What the record has that the data means: a published one of the same name. None: there can be none."""
    given = {name: value for name, value in link.items() if value is not None}
    if given.get("status", "publish") != "publish":
        return None
    settled = kind.settle(given, None, site)
    return {name: settled[name] for name in given if name in settled} | {"status": "publish"}


async def find_term(database: Database, kind: Kind, text: str) -> dict[str, Any] | None:
    """A term by slug, else by name in any case."""
    collection = database[kind.plural]
    return await collection.find_one({"slug": text}) or await collection.find_one(
        {"key": name_key(text)}, sort=[("_id", 1)]
    )


def name_key(name: str) -> str:
    """What two names of terms share that count as the same."""
    return unicodedata.normalize("NFC", name).casefold()
