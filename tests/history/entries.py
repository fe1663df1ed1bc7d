"""Entries of a history: registers, creations and chains.

Each register has one writer, which sends one request at a time. A request without an answer, or with 503, may
have been applied or not: until the next acknowledged write both values are possible.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

Key = tuple[Hashable, ...]


@dataclass
class Register:
    """A value with one writer."""

    value: Any
    possible: list[Any] = field(default_factory=list)
    changed_at: int = 0
    in_flight: bool = False

    def allows(self, value: Any) -> bool:
        return value == self.value or value in self.possible

    def shown(self) -> str:
        return f"{self.value!r}" + (f" (or {self.possible!r}, outcome unknown)" if self.possible else "")


@dataclass
class Creation:
    """An event that was sent, with the names that only it uses. Of several with the same title, each has a
    venue of its own: `Hall 7.0`, `Hall 7.1` and so on."""

    title: str
    hall: str = ""
    only_tag: str = ""
    is_counted: bool = False
    twins: int = 1
    acknowledged: list[dict[str, Any]] = field(default_factory=list)
    refused: int = 0


class Chain:
    """A text to which conditional updates append tokens."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, str]] = [(0, "start")]
        self.acknowledged: list[str] = []
        self.refused: list[str] = []
        self.versions: set[str] = set()


def is_prefix(first: str, second: str) -> bool:
    return f"{second} ".startswith(f"{first} ")


def revision(text: str) -> int:
    """The number in a text such as `Hall v17` or `https://example.org/v17`; 0 if there is none."""
    found = re.search(r"\bv(\d+)$", text)
    return int(found[1]) if found else 0
