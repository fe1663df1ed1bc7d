"""What a workload is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from benchmarks.asks import Ask, Listing

Beside = Literal["", "changes", "neighbour"]
"""What writes at a steady pace during a workload: nothing, changes of events, or another application."""
NOT_EVE = ("kalends", "constant", "motor", "beanie", "beanie_fast", "fastify")
"""Eve is slower than the other peers: it takes part only where one address is repeated."""


@dataclass(frozen=True)
class Workload:
    """Requests that are sent for a while, again and again unless `once` is set."""

    name: str
    title: str
    make: Callable[[], list[Ask]]
    make_warm: Callable[[], list[Ask]] = list
    """Other requests, sent before the measurement; without any, the requests themselves."""
    checked: int = 40
    """How many of these are sent to all systems before, to compare the lists that they return."""
    connections: int | None = None
    once: bool = False
    """No request is sent twice: each round gets its share of them, and ends early if there are no more."""
    whole: bool = False
    """A round sends all of its requests. If it ended after some seconds, as others do, Kalends would only be
    measured while most records are new to it, which happens once in the life of a process."""
    fresh: bool = False
    """Kalends is restarted before."""
    cold: bool = False
    """Nothing is sent before the measurement, which has one round and sends all requests."""
    beside: Beside = ""
    systems: tuple[str, ...] = ()
    """Keys of the systems that take part; all if empty."""
    two: bool = False
    """Compares two processes of Kalends with one."""
    imports: bool = False
    """The events are imported from a file with `kalends import`."""

    @cached_property
    def asks(self) -> list[Ask]:
        return self.make()

    @cached_property
    def warm(self) -> list[Ask]:
        return self.make_warm()

    @property
    def lists(self) -> bool:
        return isinstance(self.asks[0], Listing) and all(isinstance(ask, Listing) for ask in self.asks)
