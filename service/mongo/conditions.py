"""Conditions of queries: the fields and operators in them, and their evaluation in memory."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any

COMPARISONS = {"$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le}
EVALUATED = frozenset(["$and", "$or", "$nor", "$elemMatch", "$in", "$nin", "$ne", *COMPARISONS])
"""Operators that `matches` understands."""


def fields_of(conditions: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The top-level fields that conditions refer to."""
    found: set[str] = set()
    for condition in conditions:
        for name, wanted in condition.items():
            found |= fields_of(wanted) if name.startswith("$") else {name.partition(".")[0]}
    return frozenset(found)


def can_match(conditions: Iterable[Mapping[str, Any]]) -> bool:
    """Whether `matches` understands all operators of conditions."""
    return _operators(list(conditions)) <= EVALUATED


def _operators(value: Any) -> set[str]:
    if isinstance(value, list):
        return set().union(*map(_operators, value))
    if not isinstance(value, dict):
        return set()
    return {name for name in value if name.startswith("$")}.union(*map(_operators, value.values()))


def matches(conditions: Iterable[Mapping[str, Any]], record: Mapping[str, Any]) -> bool:
    """Whether all conditions hold for a record; only for conditions that can be evaluated."""
    return all(_holds(name, wanted, record) for one in conditions for name, wanted in one.items())


def _holds(name: str, wanted: Any, record: Mapping[str, Any]) -> bool:
    if name == "$and":
        return matches(wanted, record)
    if name in ("$or", "$nor"):
        return any(matches([one], record) for one in wanted) is (name == "$or")
    values = _values(name, record)
    if not isinstance(wanted, dict):
        return wanted in values
    return all(_meets(one, bound, values) for one, bound in wanted.items())


def _values(name: str, record: Mapping[str, Any]) -> list[Any]:
    """The values of a field: a single one, all elements of an array, or a subfield of each element."""
    top, _, inner = name.partition(".")
    value = record.get(top)
    found = value if isinstance(value, list) else [value]
    return [one.get(inner) for one in found if isinstance(one, dict)] if inner else found


def _meets(name: str, bound: Any, values: list[Any]) -> bool:
    if name == "$elemMatch":
        return any(matches([bound], one) for one in values if isinstance(one, dict))
    if name in ("$in", "$nin"):
        return set(bound).isdisjoint(values) is (name == "$nin")
    if name == "$ne":
        return bound not in values
    return any(value is not None and bool(COMPARISONS[name](value, bound)) for value in values)
