"""Resolves links of events: finds the records referred to, and prepares those to create with the event."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import bson
from bson import ObjectId

from schemas import BY_PLURAL
from schemas.caller import Caller, Role
from schemas.errors import InvalidFields, not_found
from schemas.event_view import LINKED
from schemas.kind import Document, Kind
from schemas.language import Text
from schemas.links import is_number
from schemas.site import Site
from service.store.batches import Batch
from service.store.client import Database, collections
from service.store.copies import copy_of
from service.store.lookups import PRIVATE, find_in_many
from service.store.wishes import Found, Wish, condition, name_key, wish_of

New = tuple[Kind, Document]
Sent = Mapping[str, list[tuple[Any, Wish | None]]]
"""Field -> its links as sent, each with its link reference; None if no such record can exist yet."""
FEW = 16
"""Up to this many copies are never too large together."""
LARGEST = 8_000_000
"""Maximum size of the copies in an event, in bytes; MongoDB limits a document to 16 MiB."""


class Maker(Protocol):
    """Builds a record of a kind from its input, without storing it."""

    async def __call__(self, kind: Kind, data: Document, caller: Caller, taken: set[str]) -> Document: ...


class Linked(NamedTuple):
    """The copies to embed for every link field sent, the records to create with the event, and the version
    stamp of the copies if they come from a cache and may be outdated."""

    copies: dict[str, Any]
    new: list[New]
    epoch: ObjectId | None


@dataclass(frozen=True, eq=False)
class Wishes:
    """The link references of one event."""

    of: list[tuple[Kind, Wish]]


class Links:
    """Turns the links that a client sent into embedded copies of existing or new records."""

    def __init__(self, database: Database, site: Site, make: Maker) -> None:
        self._collection = collections(database)
        self._site = site
        self._make = make
        self._looks = Batch[Wishes, Found](self._look)

    async def resolve(self, data: Mapping[str, Any], caller: Caller) -> Linked:
        """Resolve all links sent for an event; raises InvalidFields with all invalid ones."""
        copies: dict[str, Any] = {}
        new: list[New] = []
        wrong: dict[str, str] = {}
        sent = self._sent(data)
        found = await self._find(wishes_of(sent))
        for field, links in sent.items():
            kind = LINKED[field]
            linked, made, problem = await self._field(kind, links, found, caller)
            copies[field] = [copy_of(kind, record) for record in linked]
            new += made
            wrong |= {field: problem} if problem else {}
        if sum(map(len, copies.values())) > FEW and len(bson.encode(copies)) > LARGEST:
            wrong = dict.fromkeys(
                copies, Text("The linked records are too large to be stored with the event.")
            )
        if wrong:
            raise InvalidFields(wrong)
        return Linked(copies, new, found.epoch)

    def _sent(self, data: Mapping[str, Any]) -> Sent:
        return {
            field: [(link, wish_of(kind, link, self._site)) for link in data[field] or ()]
            for field, kind in LINKED.items()
            if field in data
        }

    async def _find(self, wishes: Wishes) -> Found:
        return (await self._looks.ask(wishes) if wishes.of else None) or Found()

    async def _look(self, asked: Sequence[Wishes]) -> dict[Wishes, Found]:
        """Find all records that the links of concurrent events refer to."""
        wanted: defaultdict[str, list[Wish]] = defaultdict(list)
        for wishes in asked:
            for kind, wish in wishes.of:
                wanted[kind.plural].append(wish)
        parts = [(plural, condition(wishes)) for plural, wishes in wanted.items()]
        found = Found()
        for at, row in await find_in_many(self._collection, parts, PRIVATE):
            found.add(BY_PLURAL[parts[at][0]], row)
        return dict.fromkeys(asked, found)

    async def _field(
        self, kind: Kind, links: list[tuple[Any, Wish | None]], found: Found, caller: Caller
    ) -> tuple[list[Document], list[New], Text | None]:
        records: dict[int, Document] = {}
        new: list[New] = []
        for link, wish in links:
            record = None if wish is None else found.meant(kind, wish)
            if record is None and isinstance(link, str):
                record = next(
                    (made for _, made in new if name_key(link) in (made["key"], made["slug"])), None
                )
            is_id = isinstance(link, int) or is_number(link)
            if is_id and (record is None or not caller.sees(record)):
                # Do not reveal the existence of records that the caller may not see.
                return [], [], not_found(kind.name, link)
            if record is None and not kind.is_post and caller.role is Role.CONTRIBUTOR:
                return [], [], not_found(kind.name, link)
            if record is None:
                data = {"name": link} if isinstance(link, str) else link
                record = await self._make(kind, data, caller, {one["slug"] for _, one in new})
                new.append((kind, record))
            records.setdefault(record["_id"], record)
        return list(records.values()), new, None


def wishes_of(sent: Sent) -> Wishes:
    wishes = ((LINKED[field], wish) for field, links in sent.items() for _, wish in links)
    return Wishes([(kind, wish) for kind, wish in wishes if wish is not None])


async def find_term(database: Database, kind: Kind, text: str) -> Document | None:
    """Find a term by id, else by slug, else by name, ignoring case."""
    found = Found()
    for row in await database[kind.plural].find(condition([text]), PRIVATE).to_list(None):
        found.add(kind, row)
    return found.meant(kind, text)
