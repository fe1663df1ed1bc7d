"""Resolves links of new events from a cache that is valid until any linked record changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bson import ObjectId

from schemas.kind import Document, Kind
from schemas.site import Site
from schemas.slugs import slug_of
from service.store.epoch import Epoch
from service.store.links.references import Candidates, LinkRef, id_in
from service.store.links.resolving import EventRefs, Links, RecordFactory
from service.store.mongo.client import Database

MOST = 2_000
"""Maximum number of cached links."""
LONGEST = 10_000
"""Records with a description of more characters than this are not cached."""


class KnownLinks(Links):
    """Links with a cache, which is valid if the version stamp is still the same when the event is stored."""

    def __init__(self, database: Database, site: Site, make: RecordFactory, epoch: Epoch) -> None:
        super().__init__(database, site, make)
        self._epoch = epoch
        self._begin(None)

    def _begin(self, epoch: ObjectId | None) -> None:
        self._known, self._sure = Candidates(epoch), set[tuple[str, LinkRef]]()

    def forget(self, epoch: ObjectId | None) -> None:
        """Clear the cache if it has this version stamp, which is outdated."""
        if epoch == self._known.epoch:
            self._begin(None)

    async def _find(self, refs: EventRefs) -> Candidates:
        if refs.of and all(self._is_known(kind, ref) for kind, ref in refs.of):
            return self._known
        return await super()._find(refs)

    def _is_known(self, kind: Kind, ref: LinkRef) -> bool:
        return not isinstance(ref, dict) and (kind.name, ref) in self._sure

    async def _look(self, asked: Sequence[EventRefs]) -> dict[EventRefs, Candidates]:
        named = [refs for refs in asked if not any(isinstance(ref, dict) for _, ref in refs.of)]
        epoch = await self._epoch.now() if named else None  # first, so that the records are as new
        looked = await super()._look(asked)
        if epoch:
            self._learn(epoch, {refs: looked[refs] for refs in named})
        return looked

    def _learn(self, epoch: ObjectId, looked: Mapping[EventRefs, Candidates]) -> None:
        if epoch != self._known.epoch or len(self._sure) > MOST:
            self._begin(epoch)
        for refs, found in looked.items():
            for kind, ref in refs.of:
                self._remember(kind, ref, found.match(kind, ref))

    def _remember(self, kind: Kind, ref: LinkRef, record: Document | None) -> None:
        if record and is_sure(ref, record) and len(record.get("description") or "") <= LONGEST:
            self._known.add(kind, record)
            self._sure.add((kind.name, ref))


def is_sure(ref: LinkRef, record: Document) -> bool:
    """Whether a reference keeps its meaning until a record changes, even if others are created."""
    # A text is matched with ids first, then with slugs, then with names.
    if (id := id_in(ref)) is not None:
        return bool(id == record["_id"])
    return isinstance(ref, str) and (ref == record["slug"] or ref != slug_of(ref, ""))
