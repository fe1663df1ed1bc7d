"""List query: the filter, sort order and index hint of a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import bson

from schemas.kind import Document
from service.store.mongo.client import Collection

Condition = dict[str, Any]
Sort = list[tuple[str, int]]


def key_of(conditions: list[Condition]) -> bytes:
    """A hashable cache key for a filter."""
    return bson.encode({"": conditions})


class ListQuery(NamedTuple):
    """Conditions that must all hold, the sort order, and an index hint where the planner chooses badly."""

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
        any_of: Sequence[Condition] = (),
    ) -> list[Document]:
        """Return a slice of the records; with `any_of`, of those that meet one of these conditions."""
        found = collection.find(self._either(any_of), shown, sort=self.sort, hint=self.hint)
        return await found.skip(skip).limit(limit).to_list(None)

    def pipeline(
        self, skip: int, limit: int, shown: Mapping[str, int], any_of: Sequence[Condition]
    ) -> list[Condition]:
        """The same query as an aggregation pipeline."""
        first = [{"$match": self._either(any_of)}, {"$sort": dict(self.sort)}]
        return [*first, {"$skip": skip}, {"$limit": limit}, {"$project": shown}]

    def _either(self, any_of: Sequence[Condition]) -> Condition:
        # Repeat all conditions in each branch: only then does each use an index, with a sorted merge.
        return {"$or": [{"$and": [*self.conditions, way]} for way in any_of]} if any_of else self.filter


def ordered(field: str, direction: str | None) -> Sort:
    """A total order: `_id` breaks ties."""
    sign = -1 if direction == "desc" else 1
    return [(field, sign)] if field == "_id" else [(field, sign), ("_id", sign)]
