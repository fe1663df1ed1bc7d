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
from schemas.event_representation import LINKED
from schemas.kind import Document, Kind
from schemas.language import Text
from schemas.links import is_number
from schemas.site import Site
from service.store.links.fanout import copy_of
from service.store.links.references import Candidates, LinkRef, condition, link_ref, name_key
from service.store.mongo.client import Database, collections
from service.store.mongo.coalescing import Batcher
from service.store.mongo.loaders import HIDDEN_FIELDS, find_in_many

New = tuple[Kind, Document]
Sent = Mapping[str, list[tuple[Any, LinkRef | None]]]
"""Field -> its links as sent, each with its link reference; None if no such record can exist yet."""
FEW = 16
"""Up to this many copies are never too large together."""
LARGEST = 8_000_000
"""Maximum size of the copies in an event, in bytes; MongoDB limits a document to 16 MiB."""


class RecordFactory(Protocol):
    """Builds a record of a kind from its input, without storing it."""

    async def __call__(self, kind: Kind, data: Document, caller: Caller, taken: set[str]) -> Document: ...


class Linked(NamedTuple):
    """The copies to embed for every link field sent, the records to create with the event, and the version
    stamp of the copies if they come from a cache and may be outdated."""

    copies: dict[str, Any]
    new: list[New]
    epoch: ObjectId | None


@dataclass(frozen=True, eq=False)
class EventRefs:
    """The link references of one event."""

    of: list[tuple[Kind, LinkRef]]


class Links:
    """Turns the links that a client sent into embedded copies of existing or new records."""

    def __init__(self, database: Database, site: Site, make: RecordFactory) -> None:
        self._collection = collections(database)
        self._site = site
        self._make = make
        self._looks = Batcher[EventRefs, Candidates](self._look)

    async def resolve(self, data: Mapping[str, Any], caller: Caller) -> Linked:
        """Resolve all links sent for an event; raises InvalidFields with all invalid ones."""
        copies: dict[str, Any] = {}
        new: list[New] = []
        wrong: dict[str, str] = {}
        sent = self._sent(data)
        found = await self._find(refs_of(sent))
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
            field: [(link, link_ref(kind, link, self._site)) for link in data[field] or ()]
            for field, kind in LINKED.items()
            if field in data
        }

    async def _find(self, refs: EventRefs) -> Candidates:
        return (await self._looks.load(refs) if refs.of else None) or Candidates()

    async def _look(self, asked: Sequence[EventRefs]) -> dict[EventRefs, Candidates]:
        """Find all records that the links of concurrent events refer to."""
        wanted: defaultdict[str, list[LinkRef]] = defaultdict(list)
        for refs in asked:
            for kind, ref in refs.of:
                wanted[kind.plural].append(ref)
        parts = [(plural, condition(refs)) for plural, refs in wanted.items()]
        found = Candidates()
        for at, row in await find_in_many(self._collection, parts, HIDDEN_FIELDS):
            found.add(BY_PLURAL[parts[at][0]], row)
        return dict.fromkeys(asked, found)

    async def _field(
        self, kind: Kind, links: list[tuple[Any, LinkRef | None]], found: Candidates, caller: Caller
    ) -> tuple[list[Document], list[New], Text | None]:
        records: dict[int, Document] = {}
        new: list[New] = []
        for link, ref in links:
            record = None if ref is None else found.match(kind, ref)
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


def refs_of(sent: Sent) -> EventRefs:
    refs = ((LINKED[field], ref) for field, links in sent.items() for _, ref in links)
    return EventRefs([(kind, ref) for kind, ref in refs if ref is not None])
