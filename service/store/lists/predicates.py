"""Evaluates the conditions of a list on a record in memory, without the database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from service.store.event_changes import Facts

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": lambda value, bound: value is not None and value > bound,
    "$gte": lambda value, bound: value is not None and value >= bound,
    "$lt": lambda value, bound: value is not None and value < bound,
    "$lte": lambda value, bound: value is not None and value <= bound,
}


class Unknown(Exception):
    """Only the database can evaluate the condition."""


def fields_of(conditions: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The top-level fields that conditions refer to."""
    found: set[str] = set()
    for condition in conditions:
        for name, wanted in condition.items():
            found |= fields_of(wanted) if name.startswith("$") else {name.partition(".")[0]}
    return frozenset(found)


def matches(conditions: Iterable[Mapping[str, Any]], facts: Facts) -> bool:
    """Whether all conditions hold. A false one decides, even if others cannot be evaluated."""
    unknown = False
    for condition in conditions:
        for name, wanted in condition.items():
            try:
                if not _holds(name, wanted, facts):
                    return False
            except Unknown:
                unknown = True
    if unknown:
        raise Unknown
    return True


def _holds(name: str, wanted: Any, facts: Facts) -> bool:
    if name == "$and":
        return matches(wanted, facts)
    if name == "$or":
        return any(matches([one], facts) for one in wanted)
    if name == "$nor":
        return not any(matches([one], facts) for one in wanted)
    values = _values(name, facts)
    if not isinstance(wanted, dict):
        return wanted in values
    return all(_meets(operator, bound, values) for operator, bound in wanted.items())


def _values(name: str, facts: Facts) -> list[Any]:
    """The values of a field: a single one, all elements of an array, or a subfield of each element."""
    top, _, inner = name.partition(".")
    if top not in facts:
        raise Unknown
    value = facts[top]
    found = value if isinstance(value, list) else [value]
    return [one.get(inner) for one in found if isinstance(one, dict)] if inner else found


def _meets(operator: str, bound: Any, values: list[Any]) -> bool:
    if operator == "$elemMatch":
        return any(matches([bound], one) for one in values if isinstance(one, dict))
    if operator in COMPARISONS:
        return any(COMPARISONS[operator](value, bound) for value in values)
    if operator in ("$in", "$nin"):
        return set(bound).isdisjoint(values) is (operator == "$nin")
    if operator == "$ne":
        return bound not in values
    raise Unknown
