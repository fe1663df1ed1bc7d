"""What a list is asked for, in words of the database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from schemas.kind import Document
from service.store.client import Collection

Condition = dict[str, Any]


class Asked(NamedTuple):
    """Conditions that must all hold, the order, and the index to use where the planner would choose badly."""

    conditions: list[Condition]
    sort: list[tuple[str, int]]
    hint: str | None = None

    @property
    def filter(self) -> Condition:
        return {"$and": self.conditions} if self.conditions else {}

    async def rows(
        self,
        collection: Collection,
        skip: int,
        limit: int,
        shown: Mapping[str, int],
        further: Iterable[Condition] = (),
    ) -> list[Document]:
        """A stretch of the records, of those that meet further conditions too."""
        wanted = self._replace(conditions=[*self.conditions, *further])
        found = collection.find(wanted.filter, shown, sort=self.sort, hint=self.hint)
        return await found.skip(skip).limit(limit).to_list(None)


def ordered(field: str, direction: str | None) -> list[tuple[str, int]]:
    """An order in which no two records are equal."""
    sign = -1 if direction == "desc" else 1
    return [(field, sign)] if field == "_id" else [(field, sign), ("_id", sign)]
