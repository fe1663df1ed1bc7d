"""Filter resolver: finds the records that filters name, and caches them until one of their kind changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple

from cachetools import LRUCache

from schemas.caller import Caller, visible
from schemas.errors import InvalidFields, not_found
from schemas.kind import Document, Kind
from schemas.kinds.event import EVENT
from schemas.kinds.event_representation import LINK_FIELD
from schemas.kinds.venue import VENUE
from schemas.language import Text
from schemas.link_refs import Candidates, condition
from schemas.site import Site
from service.changes.feed import ChangeFeed
from service.changes.log import ChangeLog
from service.mongo.client import Collection, Database, aggregate, collections
from service.mongo.coalescing import Batcher
from service.mongo.loaders import GROUPED_READS, HEAD_FIELDS, RecordLoader, aggregate_many
from service.search import Vocabulary

MAX_CACHED_RECORDS = 100_000
"""Records that cached look-ups have found, altogether."""
EARTH_KM = 6371.0088
MAX_VENUES_NEAR = 200_000
"""Maximum number of venues in a circle; a command to MongoDB has room for the ids of twice as many."""


class Circle(NamedTuple):
    """A circle on the map, and who looks for the venues in it."""

    lat: float
    lng: float
    radius_km: float
    caller: Caller

    @property
    def pipeline(self) -> list[Document]:
        """Finds the ids of at most one venue too many, in one row."""
        circle = {"$centerSphere": [[self.lng, self.lat], self.radius_km / EARTH_KM]}
        inside = {"$match": {"point": {"$geoWithin": circle}} | visible(self.caller)}
        return [inside, {"$limit": MAX_VENUES_NEAR + 1}, {"$group": {"_id": None, "ids": {"$push": "$_id"}}}]


class FilterResolver:
    """What the functions that translate filters need: records that filters name, the site, the vocabulary."""

    def __init__(
        self,
        database: Database,
        site: Site,
        feed: ChangeFeed,
        vocabulary: Vocabulary,
        log: ChangeLog,
    ) -> None:
        self.database, self.site, self.vocabulary, self.log = database, site, vocabulary, log
        self._feed, self._heads = feed, RecordLoader(database, HEAD_FIELDS)
        self._cache: LRUCache[bytes, tuple[int, Any]] = LRUCache(
            MAX_CACHED_RECORDS, getsizeof=lambda entry: 10 + len(entry[1])
        )
        self.circles = Batcher[Circle, list[int]](
            partial(find_venues, collections(database)), **GROUPED_READS
        )
        self.hits = self.misses = 0

    async def _cached(self, kind: Kind, wanted: Sequence[Any], load: Callable[[], Awaitable[Any]]) -> Any:
        """A result that is valid until a record of the kind changes."""
        key = blake2b(repr((kind.plural, *wanted)).encode(), digest_size=16).digest()  # requests may be long
        position, found = self._cache.get(key, (-1, None))
        if self._feed.has_changed(kind.plural, position):
            self.misses += 1
            position = self._feed.position
            found = await load()
            if len(found) < MAX_CACHED_RECORDS // 10:
                self._cache[key] = (position, found)
        else:
            self.hits += 1
        return found

    async def term_ids(self, kind: Kind, name: str, wanted: Sequence[str]) -> list[int]:
        """Ids of the terms given by id, slug or name, and of all their descendants."""
        found: list[int] = await self._cached(kind, wanted, partial(self._term_ids, kind, name, wanted))
        return found

    async def _term_ids(self, kind: Kind, name: str, wanted: Sequence[str]) -> list[int]:
        only_ids = [{"$project": {"_id": 1}}]
        joined = {"from": kind.plural, "localField": "_id", "foreignField": "ancestors"}
        below = {"$lookup": {**joined, "pipeline": only_ids, "as": "below"}}
        shown = {"$project": {"slug": 1, "key": 1, "below": 1}}
        candidates = Candidates()
        pipeline = [{"$match": condition(wanted)}, below, shown]
        for row in await aggregate(self.database[kind.plural], pipeline):
            candidates.add(kind, row)
        ids: dict[int, None] = {}
        for text in wanted:
            if (term := candidates.match(kind, text)) is None:
                raise InvalidFields({name: not_found(kind.name, text)})
            ids |= dict.fromkeys([term["_id"], *(row["_id"] for row in term["below"])])
        return list(ids)

    async def visible_ids(self, kind: Kind, name: str, wanted: list[int], caller: Caller) -> list[int]:
        """Ids of those venues or organizers that the caller may see; others match no event. Checked on the
        records instead of their embedded copies, so that events can be counted from an index alone."""
        ids = sorted(set(wanted))
        rows = await self._cached(kind, ids, partial(self._visibility, kind, name, ids))
        return [id for id, seen in rows if seen["status"] != "trash" and caller.sees(seen)]

    async def _visibility(self, kind: Kind, name: str, ids: list[int]) -> list[tuple[int, Document]]:
        """What decides who may see each record; nothing else of it is cached."""
        rows = await self.require(kind, name, ids)
        return [(row["_id"], {"status": row["status"], "author": row.get("author")}) for row in rows]

    async def venues_near(self, circle: Circle) -> list[int]:
        """Ids of the venues in a circle that the caller may see. Events are found by these ids, so that they
        can be counted from an index alone."""
        ids = await self.circles.load(circle) or []
        if len(ids) > MAX_VENUES_NEAR:
            raise InvalidFields({"geoloc_radius": Text("There are too many venues within this radius.")})
        return sorted(ids)

    async def require(self, kind: Kind, name: str, ids: list[int]) -> list[Document]:
        """Raise InvalidFields unless every id exists; return the heads of the records."""
        wanted = [(kind.plural, id) for id in sorted(ids)]
        found = await self._heads.load_many(wanted)
        if unknown := [id for plural, id in wanted if (plural, id) not in found]:
            raise InvalidFields({name: not_found(kind.name, unknown[0])})
        return [found[one] for one in wanted]

    async def linked_ids(self, kind: Kind, name: str, event: int, caller: Caller) -> list[int]:
        """Ids that an event links to, none if it is protected; InvalidFields if the caller may not see it."""
        field = LINK_FIELD[kind.name]
        found = await self.database[EVENT.plural].find_one(
            {"$and": [{"_id": event}, visible(caller)]}, {field: 1, "password": 1}
        )
        if found is None:
            raise InvalidFields({name: not_found("event")})
        locked = found.get("password") and not caller.bypasses_passwords
        return [] if locked else [copy["_id"] for copy in found.get(field, ())]


async def find_venues(
    collection: Callable[[str], Collection], circles: Sequence[Circle]
) -> dict[Circle, list[int]]:
    """The ids of the venues in circles, with one command for concurrent requests: different places are a
    quarter faster than with a command for each."""
    pipelines = [(VENUE.plural, circle.pipeline) for circle in circles]
    found = await aggregate_many(collection, pipelines)
    return {circle: rows[0]["ids"] for circle, rows in zip(circles, found, strict=True) if rows}
