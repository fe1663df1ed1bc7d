"""Counts the operations that reach MongoDB."""

from __future__ import annotations

import time
from typing import Any

COUNTED = ("query", "getmore", "insert", "update", "delete", "command")
IDLE_SECONDS = 6.0
"""Longer than the interval between two maintenance runs of Kalends, so that one is included."""


class Meter:
    """Counts commands, minus those sent while there are no requests."""

    def __init__(self, database: Any) -> None:
        self._database = database
        self._idle = 0.0
        self._begun = (0, 0.0)

    def find_idle(self) -> None:
        self._idle = 0.0
        self.start()
        time.sleep(IDLE_SECONDS)
        self._idle = self.stop() / IDLE_SECONDS

    def start(self) -> None:
        self._begun = (self._total(), time.monotonic())

    def stop(self) -> float:
        total, since = self._begun
        idle = self._idle * (time.monotonic() - since)
        return max(0.0, self._total() - total - idle)

    def _total(self) -> int:
        counters = self._database.command("serverStatus")["opcounters"]
        return sum(counters[name] for name in COUNTED)
