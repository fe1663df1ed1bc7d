"""Links of many events at once: each is looked up once, and what one event makes the next one finds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from schemas.caller import Caller
from schemas.event_view import LINKED
from schemas.kind import Document, Kind
from schemas.site import Site
from service.store.client import Database
from service.store.links import Known, Links, Maker, New, described, linked_ids, name_key
from service.store.lookups import PRIVATE

MOST = 20_000
"""Records to remember; more are looked up again."""


Wanted = str | dict[str, Any]
"""What a link says of the record it means: a term's slug or name, or what a venue or organizer has."""
ByName = defaultdict[tuple[str, str], list[Document]]


class SharedLinks(Links):
    """Links that remember. Whoever stores their copies must see to it that they are still right."""

    def __init__(self, database: Database, site: Site, make: Maker) -> None:
        super().__init__(database, site, self._make_apart)
        self._prepare = make
        self._known: dict[tuple[str, Any], Document] = {}

    async def begin(self, bodies: Sequence[Mapping[str, Any]], caller: Caller) -> None:
        """Another batch: all that its events link to is read, one time for each kind."""
        self.new: list[New] = []
        self._made: ByName = defaultdict(list)
        self._slugs: defaultdict[str, set[str]] = defaultdict(set)
        if len(self._known) > MOST:
            self._known.clear()
        await self._by_id(list({link for data in bodies for link in linked_ids(data)}), caller)
        for field, kind in LINKED.items():
            links = [link for data in bodies for link in data.get(field) or ()]
            await self._by_data(kind, [link for link in links if not isinstance(link, int)])

    def forget(self) -> None:
        """Somebody has changed a record: all are looked up again."""
        self._known.clear()

    def keep(self, new: Iterable[New]) -> None:
        """What an event of this batch is stored with, and others may link to."""
        for kind, record in new:
            self.new.append((kind, record))
            self._slugs[kind.name].add(record["slug"])
            _file(self._made, kind, record)

    async def _by_id(self, asked: Sequence[tuple[str, int]], caller: Caller) -> Known:
        unknown = [link for link in asked if link not in self._known]
        self._known |= await super()._by_id(unknown, caller)
        return {link: self._known[link] for link in asked if link in self._known}

    async def _by_data(self, kind: Kind, links: Iterable[Any]) -> None:
        """Reads what is linked by name or by data, and is there."""
        asked = {repr(wanted): wanted for link in links if (wanted := self._wanted(kind, link))}
        unknown = {key: wanted for key, wanted in asked.items() if (kind.name, key) not in self._known}
        if not unknown:
            return
        stored: ByName = defaultdict(list)
        async for record in self._database[kind.plural].find(_likely(kind, unknown.values()), PRIVATE):
            _file(stored, kind, record)
        for key, wanted in unknown.items():
            if found := _meant(stored, kind, wanted):
                self._known[kind.name, key] = found

    async def _found(self, kind: Kind, link: Any) -> Document | None:
        if not (wanted := self._wanted(kind, link)):
            return None
        return self._known.get((kind.name, repr(wanted))) or _meant(self._made, kind, wanted)

    def _wanted(self, kind: Kind, link: Any) -> Wanted | None:
        return link if isinstance(link, str) else described(kind, link, self._site)

    async def _make_apart(self, kind: Kind, data: Document, caller: Caller, taken: set[str]) -> Document:
        """A new record whose slug differs from those of the whole batch."""
        return await self._prepare(kind, data, caller, taken | self._slugs[kind.name])


def _likely(kind: Kind, wanted: Iterable[Wanted]) -> Document:
    """Finds all records that may be meant, and few others."""
    texts = [one for one in wanted if isinstance(one, str)]
    names = [one[kind.title] for one in wanted if not isinstance(one, str)]
    if kind.is_post:
        return {kind.title: {"$in": names}, "status": "publish"}
    return {"$or": [{"slug": {"$in": texts}}, {"key": {"$in": [name_key(text) for text in texts]}}]}


def _file(records: ByName, kind: Kind, record: Document) -> None:
    for name in {record[kind.title]} if kind.is_post else {record["slug"], record["key"]}:
        records[kind.name, name].append(record)


def _meant(records: ByName, kind: Kind, wanted: Wanted) -> Document | None:
    """The record that is meant: a term by slug, else by name; of several the oldest."""
    names = [wanted, name_key(wanted)] if isinstance(wanted, str) else [wanted[kind.title]]
    likely = (record for name in names for record in records.get((kind.name, name), ()))
    fitting = [record for record in likely if _fits(record, wanted)]
    return min(fitting, key=lambda record: (record["slug"] != wanted, record["_id"]), default=None)


def _fits(record: Mapping[str, Any], wanted: Wanted) -> bool:
    if isinstance(wanted, str):
        return bool(wanted == record["slug"] or name_key(wanted) == record["key"])
    return all(record.get(name) == value for name, value in wanted.items())
