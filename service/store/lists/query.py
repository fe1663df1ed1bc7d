"""List query: the filter, sort order and page of a list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

import bson

from schemas.site import Site
from service.changes.list_fields import LIST_FIELDS, SEARCHED
from service.mongo.conditions import can_match, fields_of
from service.mongo.loaders import HEAD_FIELDS

Condition = dict[str, Any]
Sort = list[tuple[str, int]]
MAX_RECORDS = 2**31
"""More than any list has, and within MongoDB's integers."""
UNLOCKED: Condition = {"locked": {"$ne": True}}
"""Events without a password."""


@dataclass(frozen=True, eq=False)
class ListQuery:
    """One page of a list: conditions that must all hold, the sort order and the position in the list."""

    plural: str
    conditions: list[Condition]
    sort: Sort
    dates: list[Condition] | None = None
    """Further conditions: bounds on the start and end of events. None for other kinds."""
    resolved: tuple[str, ...] = ()
    """Plurals of the kinds whose records the conditions were made from."""
    hint: str | None = None
    """The name of an index, where the planner chooses badly."""
    skip: int = 0
    limit: int = 1
    count_stages: tuple[Condition, ...] = ()
    """They count the list. Their result `{"total": n}` follows the records of the page; an empty list has
    none."""

    @property
    def all_conditions(self) -> list[Condition]:
        return [*self.conditions, *(self.dates or ())]

    @property
    def filter(self) -> Condition:
        return {"$and": conditions} if (conditions := self.all_conditions) else {}

    @cached_property
    def encoded(self) -> bytes:
        """The filter without its dates, as BSON."""
        return bson.encode({"": self.conditions})

    @cached_property
    def key(self) -> bytes:
        """A short cache key for the filter without its dates."""
        return blake2b(self.encoded, digest_size=16).digest()

    @cached_property
    def fields(self) -> frozenset[str]:
        """The fields that the filter and its dates depend on."""
        return fields_of(self.conditions) | {"start_utc", "end_utc"}

    @cached_property
    def links(self) -> list[list[tuple[str, int]]]:
        """For each condition on linked records, their field and ids: an event is linked to one of them."""
        wanted = [item for condition in self.conditions for item in condition.items()]
        fields = [(name[: -len("._id")], ids) for name, ids in wanted if name.endswith("._id")]
        return [[(field, id) for id in ids["$in"]] for field, ids in fields]

    @property
    def pipeline(self) -> list[Condition]:
        """The aggregation pipeline of the page."""
        found: list[Condition] = [{"$match": self.filter}, {"$sort": dict(self.sort)}]
        skipped = [{"$skip": min(self.skip, MAX_RECORDS)}] if self.skip else []
        counted = (
            [{"$unionWith": {"coll": self.plural, "pipeline": [*self.count_stages]}}]
            if self.count_stages
            else []
        )
        return [*found, *skipped, {"$limit": self.limit}, {"$project": HEAD_FIELDS}, *counted]

    def slice(self, skip: int, limit: int) -> ListQuery:
        return replace(self, skip=skip, limit=limit)

    def counted(self, max_total: int = 0, any_of: Sequence[Condition] = ()) -> ListQuery:
        """The page and its total, which is counted up to `max_total` unless that is 0. With `any_of`, only
        those records are counted for which one of these conditions holds."""
        # With `$or` outside, MongoDB finds an index for each of the conditions.
        wanted = {"$or": [self.within(one).filter for one in any_of]} if any_of else self.filter
        few = [{"$limit": max_total}] if max_total else []
        return replace(self, count_stages=({"$match": wanted}, *few, {"$count": "total"}))

    def within(self, condition: Condition) -> ListQuery:
        return replace(self, conditions=[*self.conditions, condition])

    @property
    def backwards(self) -> ListQuery:
        return replace(self, sort=[(name, -sign) for name, sign in self.sort])


def ordered(field: str, direction: str | None) -> Sort:
    """A total order: `_id` breaks ties."""
    sign = -1 if direction == "desc" else 1
    return [(field, sign)] if field == "_id" else [(field, sign), ("_id", sign)]


def changed_after(params: Mapping[str, Any], site: Site) -> list[Condition]:
    """The condition of `modified_after`. Unlike the dates of events it is a moment, not a day."""
    moment = params.get("modified_after")
    return [{"modified_utc": {"$gt": moment.bound(site.zone)}}] if moment else []


def can_evaluate(conditions: Iterable[Condition]) -> bool:
    """Whether `matches` can evaluate conditions on every change that the feed reports in full."""
    conditions = list(conditions)
    return fields_of(conditions) <= LIST_FIELDS.difference(SEARCHED) and can_match(conditions)
