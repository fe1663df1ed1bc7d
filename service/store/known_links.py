"""Resolves links of new events from a cache that is valid until any linked record changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bson import ObjectId

from schemas.kind import Document, Kind
from schemas.site import Site
from schemas.slugs import slug_of
from service.store.client import Database
from service.store.epoch import Epoch
from service.store.links import Links, Maker, Wishes
from service.store.wishes import Found, Wish, id_in

MOST = 2_000
"""Maximum number of cached links."""
LONGEST = 10_000
"""Records with a description of more characters than this are not cached."""


class KnownLinks(Links):
    """Links with a cache, which is valid if the version stamp is still the same when the event is stored."""

    def __init__(self, database: Database, site: Site, make: Maker, epoch: Epoch) -> None:
        super().__init__(database, site, make)
        self._epoch = epoch
        self._begin(None)

    def _begin(self, epoch: ObjectId | None) -> None:
        self._known, self._sure = Found(epoch), set[tuple[str, Wish]]()

    def forget(self, epoch: ObjectId | None) -> None:
        """Clear the cache if it has this version stamp, which is outdated."""
        if epoch == self._known.epoch:
            self._begin(None)

    async def _find(self, wishes: Wishes) -> Found:
        if wishes.of and all(self._is_known(kind, wish) for kind, wish in wishes.of):
            return self._known
        return await super()._find(wishes)

    def _is_known(self, kind: Kind, wish: Wish) -> bool:
        return not isinstance(wish, dict) and (kind.name, wish) in self._sure

    async def _look(self, asked: Sequence[Wishes]) -> dict[Wishes, Found]:
        named = [wishes for wishes in asked if not any(isinstance(wish, dict) for _, wish in wishes.of)]
        epoch = await self._epoch.now() if named else None  # first, so that the records are as new
        looked = await super()._look(asked)
        if epoch:
            self._learn(epoch, {wishes: looked[wishes] for wishes in named})
        return looked

    def _learn(self, epoch: ObjectId, looked: Mapping[Wishes, Found]) -> None:
        if epoch != self._known.epoch or len(self._sure) > MOST:
            self._begin(epoch)
        for wishes, found in looked.items():
            for kind, wish in wishes.of:
                self._remember(kind, wish, found.meant(kind, wish))

    def _remember(self, kind: Kind, wish: Wish, record: Document | None) -> None:
        if record and is_sure(wish, record) and len(record.get("description") or "") <= LONGEST:
            self._known.add(kind, record)
            self._sure.add((kind.name, wish))


def is_sure(wish: Wish, record: Document) -> bool:
    """Whether a reference keeps its meaning until a record changes, even if others are created."""
    # A text is matched with ids first, then with slugs, then with names.
    if (id := id_in(wish)) is not None:
        return bool(id == record["_id"])
    return isinstance(wish, str) and (wish == record["slug"] or wish != slug_of(wish, ""))
