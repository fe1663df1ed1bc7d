"""Resolves the links of events: finds the records referred to, and builds those to create with the events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any

import bson

from schemas import BY_PLURAL
from schemas.caller import Caller, Role
from schemas.errors import InvalidFields, not_found
from schemas.kind import Document, Kind
from schemas.kinds.event_representation import LINKED, copy_of
from schemas.language import Text
from schemas.link_refs import Candidates, LinkRef, condition, link_ref
from schemas.links import is_number
from schemas.site import Site
from service.mongo.client import Database, collections
from service.mongo.loaders import HIDDEN_FIELDS, find_in_many

Linked = dict[str, list[Document]]
"""Records by the link field of events that links to them."""
RecordFactory = Callable[[Kind, Document, Caller], Document]
"""Builds a new record from its data, without storing it."""
SentLinks = Mapping[str, Sequence[tuple[Any, LinkRef | None]]]
"""Field -> its links as sent, each with its link reference; None if no such record can exist yet."""
ALWAYS_SMALL = 16
"""Up to this many copies are never too large together."""
MAX_COPIES_BYTES = 8_000_000
"""MongoDB limits a document to 16 MiB."""


class LinkResolver:
    """Resolves the links of a batch of events with one query. Events that describe the same new record share
    it."""

    def __init__(self, database: Database, site: Site, build: RecordFactory) -> None:
        self._collection = collections(database)
        self._site, self._build = site, build
        self._candidates = Candidates()
        self._temporary_ids = count(-1, -1)
        self.new: Linked = {}
        """The records that all events resolved so far create."""

    async def load(self, bodies: Iterable[Mapping[str, Any]]) -> None:
        """Find everything that these events link to."""
        wanted: defaultdict[str, list[LinkRef]] = defaultdict(list)
        for sent in map(self._sent, bodies):
            for field, links in sent.items():
                wanted[LINKED[field].plural] += (ref for _, ref in links if ref is not None)
        parts = [(plural, condition(refs)) for plural, refs in wanted.items() if refs]
        found = await find_in_many(self._collection, parts, HIDDEN_FIELDS)
        for (plural, _), rows in zip(parts, found, strict=True):
            for row in rows:
                self._candidates.add(BY_PLURAL[plural], row)

    def _sent(self, data: Mapping[str, Any]) -> SentLinks:
        return {
            field: [(link, link_ref(kind, link, self._site)) for link in data[field] or ()]
            for field, kind in LINKED.items()
            if field in data
        }

    def check(self, data: Mapping[str, Any], caller: Caller) -> None:
        """Raise InvalidFields with all invalid links of an event, or if they are too large together."""
        sent = self._sent(data)
        wrong = {
            field: problem
            for field, links in sent.items()
            for link, ref in links
            if (problem := self._problem(LINKED[field], link, ref, caller))
        }
        if not wrong and self._size(sent, caller) > MAX_COPIES_BYTES:
            too_large = Text("The linked records are too large to be stored with the event.")
            wrong = dict.fromkeys(sent, too_large)
        if wrong:
            raise InvalidFields(wrong)

    def _size(self, sent: SentLinks, caller: Caller) -> int:
        """The bytes of all records that an event links to; 0 if they are too few to be too large."""
        if sum(map(len, sent.values())) <= ALWAYS_SMALL:
            return 0
        records = [
            self._found(LINKED[field], ref) or self._new(LINKED[field], link, caller)
            for field, links in sent.items()
            for link, ref in links
        ]
        return len(bson.encode({"records": records}))

    def resolve(self, data: Mapping[str, Any], caller: Caller) -> Linked:
        """The records that an event links to, after its links were checked."""
        found: Linked = {}
        for field, links in self._sent(data).items():
            records = (self._found_or_new(field, link, ref, caller) for link, ref in links)
            found[field] = list({record["_id"]: record for record in records}.values())
        return found

    def _problem(self, kind: Kind, link: Any, ref: LinkRef | None, caller: Caller) -> Text | None:
        record = self._found(kind, ref)
        is_id = isinstance(link, int) or is_number(link)
        may_create = kind.is_post or caller.role is not Role.CONTRIBUTOR
        # Do not reveal the existence of records that the caller may not see.
        if (record is None and may_create and not is_id) or (record and (not is_id or caller.sees(record))):
            return None
        return not_found(kind.name, link)

    def _found(self, kind: Kind, ref: LinkRef | None) -> Document | None:
        return None if ref is None else self._candidates.match(kind, ref)

    def _new(self, kind: Kind, link: Any, caller: Caller) -> Document:
        return self._build(kind, {"name": link} if isinstance(link, str) else link, caller)

    def _found_or_new(self, field: str, link: Any, ref: LinkRef | None, caller: Caller) -> Document:
        kind = LINKED[field]
        if record := self._found(kind, ref):
            return record
        record = self._new(kind, link, caller)
        record["_id"] = next(self._temporary_ids)
        self.new.setdefault(field, []).append(record)
        self._candidates.add(kind, record)
        return record


def copies_of(linked: Linked) -> Linked:
    """The copies to embed in an event."""
    return {field: [copy_of(LINKED[field], record) for record in many] for field, many in linked.items()}
