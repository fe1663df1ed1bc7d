"""What a list is asked for, in words of the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import bson

from schemas.kind import Document
from service.store.client import Collection

Condition = dict[str, Any]
Sort = list[tuple[str, int]]


def key_of(conditions: list[Condition]) -> bytes:
    return bson.encode({"": conditions})


class Asked(NamedTuple):
    """Conditions that must all hold, the order, and the index to use where the planner would choose badly."""

    conditions: list[Condition]
    sort: Sort
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
        ways: Sequence[Condition] = (),
    ) -> list[Document]:
        """A stretch of the records; of those, if ways are given, that meet the condition of one of them."""
        found = collection.find(self._either(ways), shown, sort=self.sort, hint=self.hint)
        return await found.skip(skip).limit(limit).to_list(None)

    def pipeline(
        self, skip: int, limit: int, shown: Mapping[str, int], ways: Sequence[Condition]
    ) -> list[Condition]:
        """The same as a pipeline."""
        first = [{"$match": self._either(ways)}, {"$sort": dict(self.sort)}]
        return [*first, {"$skip": skip}, {"$limit": limit}, {"$project": shown}]

    def _either(self, ways: Sequence[Condition]) -> Condition:
        # Each way with all conditions: only so does each follow an index, and MongoDB merges them in order.
        return {"$or": [{"$and": [*self.conditions, way]} for way in ways]} if ways else self.filter


def ordered(field: str, direction: str | None) -> Sort:
    """An order in which no two records are equal."""
    sign = -1 if direction == "desc" else 1
    return [(field, sign)] if field == "_id" else [(field, sign), ("_id", sign)]
