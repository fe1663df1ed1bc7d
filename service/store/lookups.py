"""Records by id or slug; those that are looked up at the same time are found by one query."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from service.store.batches import Batch
from service.store.client import Database

Ref = int | str
Row = dict[str, Any]
Asked = tuple[str, Ref]
"""The plural of a kind, and what names one record of it."""
Rows = Mapping[Asked, Row]
PRIVATE = {"tok": 0, "text": 0, "sort": 0}
"""Left out where a record is read to be shown, changed or copied."""


class Lookup:
    """Looks records of any kind up, with all or some of their fields."""

    def __init__(self, database: Database, shown: Mapping[str, int]) -> None:
        self._collection = cache(database.__getitem__)
        self._shown = shown
        self._batch = Batch[tuple[Asked, ...], Rows](self._look)

    async def one(self, plural: str, ref: Ref) -> Row | None:
        """A record as it is now. Others may be given the same one: it is not to be changed."""
        return (await self.many([(plural, ref)])).get((plural, ref))

    async def many(self, asked: Iterable[Asked]) -> Rows:
        """These records, as far as they are there, and perhaps others."""
        wanted = tuple(asked)
        return (await self._batch.ask(wanted) or {}) if wanted else {}

    async def _look(self, asked: Sequence[tuple[Asked, ...]]) -> dict[tuple[Asked, ...], Rows]:
        wanted: defaultdict[tuple[str, str], list[Ref]] = defaultdict(list)
        for plural, ref in {one for many in asked for one in many}:
            wanted[plural, "_id" if isinstance(ref, int) else "slug"].append(ref)
        parts = [(plural, name, {name: {"$in": refs}}) for (plural, name), refs in wanted.items()]
        return dict.fromkeys(
            asked, await (self._in_one(*parts[0]) if len(parts) == 1 else self._in_many(parts))
        )

    async def _in_one(self, plural: str, name: str, wanted: Row) -> dict[Asked, Row]:
        rows = await self._collection(plural).find(wanted, self._shown).to_list(None)
        return {(plural, row[name]): row for row in rows}

    async def _in_many(self, parts: Sequence[tuple[str, str, Row]]) -> dict[Asked, Row]:
        """From several collections by one command, since each has its price."""
        first, *others = [
            Row(coll=plural, pipeline=[{"$match": wanted}, {"$project": self._shown}, tagged(plural, name)])
            for plural, name, wanted in parts
        ]
        united = [*first["pipeline"], *({"$unionWith": other} for other in others)]
        rows = await self._collection(first["coll"]).aggregate(united).to_list(None)
        return {(plural, row[name]): row for row in rows for plural, name in [row.pop("found")]}


def tagged(plural: str, name: str) -> Row:
    """The step that lets a row say where it was found, and by what."""
    return {"$set": {"found": [plural, name]}}
