"""The LRU cache behind all response caches of a process, limited by total size in bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, Generic, TypeVar

MAX_CACHE_BYTES = 136 * 1024 * 1024
"""Maximum size of the cache in bytes, per process."""
ENTRY_OVERHEAD_BYTES = 1000
"""Estimated overhead of each entry in bytes: its key, headers and ETag."""
Value = TypeVar("Value")


class ByteLru:
    """An LRU cache whose entries each have a size in bytes."""

    def __init__(self, max_bytes: int = MAX_CACHE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self.size = 0

    def __len__(self) -> int:
        return len(self._entries)

    def take(self, key: Hashable) -> Any:
        if (found := self._entries.get(key)) is None:
            return None
        self._entries.move_to_end(key)
        return found[0]

    def keep(self, key: Hashable, value: Any, size: int) -> None:
        if before := self._entries.pop(key, None):
            self.size -= before[1]
        self._entries[key] = (value, size + ENTRY_OVERHEAD_BYTES)
        self.size += size + ENTRY_OVERHEAD_BYTES
        while self.size > self._max_bytes:
            _, (_, oldest) = self._entries.popitem(last=False)
            self.size -= oldest


class LruNamespace(Generic[Value]):
    """A namespace within a cache. All namespaces share one size limit and one LRU order."""

    def __init__(self, memory: ByteLru, label: str) -> None:
        self._memory, self._label = memory, label

    def take(self, key: Hashable) -> Value | None:
        found: Value | None = self._memory.take((self._label, key))
        return found

    def keep(self, key: Hashable, value: Value, size: int) -> None:
        self._memory.keep((self._label, key), value, size)
