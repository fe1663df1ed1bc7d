"""Bytes that a process keeps, up to so many; what was not used for longest goes first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Memory(Generic[Value]):
    """Values by key, each with the number of bytes that it counts for."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._kept: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self.size = 0

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, key: Hashable) -> Value | None:
        if (found := self._kept.get(key)) is None:
            return None
        self._kept.move_to_end(key)
        return found[0]

    def keep(self, key: Hashable, value: Value, size: int) -> None:
        if before := self._kept.pop(key, None):
            self.size -= before[1]
        self._kept[key] = (value, size)
        self.size += size
        while self.size > self._largest:
            _, (_, oldest) = self._kept.popitem(last=False)
            self.size -= oldest
