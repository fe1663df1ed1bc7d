"""What a list is asked for, in words of the database."""

from __future__ import annotations

from typing import Any, NamedTuple

Condition = dict[str, Any]


class Asked(NamedTuple):
    """Conditions that must all hold, the order, and the index to use where the planner would choose badly."""

    conditions: list[Condition]
    sort: list[tuple[str, int]]
    hint: str | None = None

    @property
    def filter(self) -> Condition:
        return {"$and": self.conditions} if self.conditions else {}


def ordered(field: str, direction: str | None) -> list[tuple[str, int]]:
    """An order in which no two records are equal."""
    sign = -1 if direction == "desc" else 1
    return [(field, sign)] if field == "_id" else [(field, sign), ("_id", sign)]
