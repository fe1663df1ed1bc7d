"""Records by id or slug; those that are looked up at the same time are found by one query."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from service.store.batches import Batch
from service.store.client import Database

Ref = int | str
PRIVATE = {"tok": 0, "text": 0, "sort": 0}
"""Left out where a record is read to be shown, changed or copied."""


class Lookup:
    """Looks records of any kind up, with all or some of their fields."""

    def __init__(self, database: Database, shown: Mapping[str, int] | None = None) -> None:
        self._database = database
        self._shown = shown
        self._batch = Batch[tuple[str, Ref], dict[str, Any]](self._look)

    async def one(self, plural: str, ref: Ref) -> dict[str, Any] | None:
        """A record as it is now. Others may be given the same one: it is not to be changed."""
        return await self._batch.ask((plural, ref))

    async def _look(self, asked: Sequence[tuple[str, Ref]]) -> dict[tuple[str, Ref], dict[str, Any]]:
        wanted: defaultdict[tuple[str, str], list[Ref]] = defaultdict(list)
        for plural, ref in asked:
            wanted[plural, "_id" if isinstance(ref, int) else "slug"].append(ref)
        many = await asyncio.gather(
            *(
                self._database[plural].find({name: {"$in": refs}}, self._shown).to_list(None)
                for (plural, name), refs in wanted.items()
            )
        )
        return {
            (plural, row[name]): row
            for (plural, name), rows in zip(wanted, many, strict=True)
            for row in rows
        }
