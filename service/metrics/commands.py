"""Counts and times the commands that the driver sends to MongoDB, and reports slow ones.

The driver calls the listener in the thread that runs the command.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from prometheus_client import Histogram
from pymongo import monitoring

from service.metrics.definitions import COMMAND_FAILURES, COMMAND_SECONDS
from service.metrics.slow_calls import SlowCall, log_slow_call

MAX_SERIES = 1000
Command = Mapping[str, Any]


class CommandMetrics(monitoring.CommandListener):
    """A listener of the driver. Commands that take `slow_ms` milliseconds or longer are logged; 0: none."""

    def __init__(self, slow_ms: float) -> None:
        self._slow_micros = slow_ms * 1000 if slow_ms else float("inf")
        self._running: dict[int, Command] = {}

    @property
    def running(self) -> int:
        """The number of commands that wait for their reply."""
        return len(self._running)

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        self._running[event.request_id] = event.command

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        self._ended(event, event.reply)

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        collection = self._ended(event, {})
        COMMAND_FAILURES.labels(event.command_name, collection).inc()

    def _ended(
        self, event: monitoring.CommandSucceededEvent | monitoring.CommandFailedEvent, reply: Command
    ) -> str:
        name, micros = event.command_name, event.duration_micros
        command = self._running.pop(event.request_id, {})
        collection = collection_of(name, command)
        seconds_of(name, collection).observe(micros / 1_000_000)
        if micros >= self._slow_micros:
            log_slow_call(SlowCall(name, collection, micros / 1000, command, reply))
        return collection


def collection_of(name: str, command: Command) -> str:
    """The collection that a command is for; empty if it is for none, such as `hello`."""
    value = command.get("collection" if name == "getMore" else name)
    return value if isinstance(value, str) else ""


@lru_cache(MAX_SERIES)
def seconds_of(name: str, collection: str) -> Histogram:
    return COMMAND_SECONDS.labels(name, collection)
