"""Record loader: loads records by id or slug, with one query for concurrent look-ups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from service.mongo.client import Collection, Database, Row, aggregate, collections, find
from service.mongo.coalescing import Batcher

Ref = int | str
RecordRef = tuple[str, Ref]
"""The plural of a kind, and the id or slug of a record."""
Rows = Mapping[RecordRef, Row]
HIDDEN_FIELDS = {"tok": 0, "text": 0, "sort": 0, "last_change": 0, "import_key": 0}
"""Fields that are not loaded when a record is shown, changed or embedded."""
SEEN_BY = {"slug": 1, "status": 1, "author": 1, "password": 1}
HEAD_FIELDS = {"version": 1, "modified_utc": 1, "events.publish": 1, **SEEN_BY}
"""Projection of a record's head: its version and who may see it, without its content."""

GROUPED_READS: dict[str, Any] = {"max_batch": 16, "slow_seconds": 0.05}
"""How concurrent reads are grouped into commands. Later ones wait at most `slow_seconds` for a command."""


class RecordLoader:
    """Loads records of any kind with a given projection."""

    def __init__(self, database: Database, shown: Mapping[str, int]) -> None:
        self._collection = collections(database)
        self._shown = shown
        self.batcher = Batcher[tuple[RecordRef, ...], Rows](self._look)

    async def load(self, plural: str, ref: Ref) -> Row | None:
        """Load a record. Concurrent callers may get the same object: do not modify it."""
        return (await self.load_many([(plural, ref)])).get((plural, ref))

    async def load_many(self, refs: Iterable[RecordRef]) -> Rows:
        """Load the records that exist; the result may contain others, too."""
        wanted = tuple(refs)
        return (await self.batcher.load(wanted) or {}) if wanted else {}

    async def _look(self, many_refs: Sequence[tuple[RecordRef, ...]]) -> dict[tuple[RecordRef, ...], Rows]:
        wanted: defaultdict[tuple[str, str], list[Ref]] = defaultdict(list)
        for plural, ref in {one for refs in many_refs for one in refs}:
            wanted[plural, "_id" if isinstance(ref, int) else "slug"].append(ref)
        names = list(wanted)
        parts = [(plural, {name: {"$in": refs}}) for (plural, name), refs in wanted.items()]
        rows = await find_in_many(self._collection, parts, self._shown)
        found = {
            (plural, row[name]): row
            for (plural, name), those in zip(names, rows, strict=True)
            for row in those
        }
        return dict.fromkeys(many_refs, found)


async def find_in_many(
    collection: Callable[[str], Collection], parts: Sequence[tuple[str, Row]], shown: Mapping[str, int]
) -> list[list[Row]]:
    """Run several queries, each on its collection, as one command, to save round trips; return the rows of
    each."""
    if not parts:
        return []
    if len(parts) == 1:
        plural, wanted = parts[0]
        return [await find(collection(plural), wanted, shown)]
    project = Row({"$project": shown})
    pipelines = [(plural, [Row({"$match": wanted}), project]) for plural, wanted in parts]
    return await aggregate_many(collection, pipelines)


async def aggregate_many(
    collection: Callable[[str], Collection], pipelines: Sequence[tuple[str, list[Row]]]
) -> list[list[Row]]:
    """Run several pipelines, each on its collection, as one command; return the rows of each."""
    first, *others = [
        Row(coll=plural, pipeline=[*stages, {"$set": {"part": at}}])
        for at, (plural, stages) in enumerate(pipelines)
    ]
    united = [*first["pipeline"], *({"$unionWith": other} for other in others)]
    found: list[list[Row]] = [[] for _ in pipelines]
    for row in await aggregate(collection(first["coll"]), united):
        found[row.pop("part")].append(row)
    return found
