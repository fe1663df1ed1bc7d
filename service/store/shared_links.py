"""Resolves links of many events: each is looked up once, and records created for one event serve the next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from schemas.caller import Caller
from schemas.kind import Document, Kind
from schemas.site import Site
from service.store.known_links import is_sure
from service.store.links.references import Candidates, LinkRef
from service.store.links.resolving import EventRefs, Links, New, RecordFactory, refs_of
from service.store.mongo.client import Database

MOST = 20_000
"""Maximum number of cached records; beyond that the cache is cleared."""


class SharedLinks(Links):
    """Links with a cache. Whoever stores the copies must check that they are still current."""

    def __init__(self, database: Database, site: Site, make: RecordFactory) -> None:
        super().__init__(database, site, self._make_apart)
        self._prepare = make
        self.forget()

    async def begin(self, bodies: Sequence[Mapping[str, Any]]) -> None:
        """Start a batch: look up everything that its events link to."""
        self.new: list[New] = []
        self._slugs: defaultdict[str, set[str]] = defaultdict(set)
        if max(len(self._known), len(self._looked)) > MOST:
            self.forget()
        refs = [ref for data in bodies for ref in refs_of(self._sent(data)).of]
        unknown = EventRefs([(kind, ref) for kind, ref in refs if not self._is_known(kind, ref)])
        self._known.add_all(await super()._find(unknown))
        self._looked.update((kind.name, repr(ref)) for kind, ref in unknown.of)

    def _is_known(self, kind: Kind, ref: LinkRef) -> bool:
        # A record that was found for another link may not be the best match.
        record = self._known.match(kind, ref) if (kind.name, repr(ref)) in self._looked else None
        return record is not None and (isinstance(ref, dict) or is_sure(ref, record))

    def forget(self) -> None:
        """Clear the cache, after a linked record has changed."""
        self._known, self._looked = Candidates(), set[tuple[str, str]]()

    def keep(self, new: Iterable[New]) -> None:
        """Add the new records of an event of this batch, so that others can link to them."""
        for kind, record in new:
            self.new.append((kind, record))
            self._slugs[kind.name].add(record["slug"])
            self._known.add(kind, record)

    async def _find(self, refs: EventRefs) -> Candidates:
        return self._known

    async def _make_apart(self, kind: Kind, data: Document, caller: Caller, taken: set[str]) -> Document:
        """Build a new record with a slug that is unique in the batch."""
        return await self._prepare(kind, data, caller, taken | self._slugs[kind.name])
