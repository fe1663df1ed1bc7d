"""Reads what the parts of a process count themselves, regularly and before each scrape.

The store and the handlers know nothing of metrics: they have plain numbers. These are read instead of being
collected at a scrape, because the other workers do not see the scrape.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Protocol

from aiohttp import web
from prometheus_client import Counter, Gauge, ProcessCollector

from service.failures import Failures
from service.metrics import definitions
from service.metrics.definitions import BUILD, CPU_SECONDS, LOOP_DELAY, MEMORY, OPEN_FILES, WORKERS

log = logging.getLogger("kalends.metrics")
SAMPLE_SECONDS = 0.5
Read = Callable[[], float]


class CountedCache(Protocol):
    """A cache that counts its hits and misses."""

    hits: int
    misses: int


class CountedBatches(Protocol):
    """Batches that count themselves and their calls."""

    calls: int
    batches: int

    @property
    def waiting(self) -> int: ...


class Sampler:
    """Sets gauges to what was read, and adds to counters what the number that was read has grown by."""

    def __init__(self) -> None:
        self._gauges: list[tuple[Gauge, Read]] = []
        self._counters: list[tuple[Counter, Read]] = []
        self._counted: dict[Counter, float] = {}
        self._process = ProcessCollector(registry=None)
        self._failures = Failures(log, "sampling the metrics")

    def watch_gauge(self, gauge: Gauge, read: Read) -> None:
        self._gauges.append((gauge, read))

    def watch_counter(self, counter: Counter, read: Read) -> None:
        self._counters.append((counter, read))
        self._counted[counter] = 0.0

    def watch_cache(self, name: str, cache: CountedCache) -> None:
        self.watch_counter(definitions.CACHE_HITS.labels(name), lambda: cache.hits)
        self.watch_counter(definitions.CACHE_MISSES.labels(name), lambda: cache.misses)

    def watch_batches(self, name: str, batches: Sequence[CountedBatches]) -> None:
        self.watch_counter(definitions.BATCHED_CALLS.labels(name), lambda: sum(one.calls for one in batches))
        self.watch_counter(definitions.BATCHES.labels(name), lambda: sum(one.batches for one in batches))
        self.watch_gauge(definitions.QUEUE.labels(name), lambda: sum(one.waiting for one in batches))

    def sample(self) -> None:
        WORKERS.set(1)
        BUILD.set(1)
        for gauge, read in self._gauges:
            gauge.set(read())
        for counter, read in self._counters:
            self._grow(counter, read())
        self._sample_process()

    def _grow(self, counter: Counter, number: float) -> None:
        counter.inc(max(0.0, number - self._counted.get(counter, 0.0)))
        self._counted[counter] = number

    def _sample_process(self) -> None:
        read = {sample.name: sample.value for one in self._process.collect() for sample in one.samples}
        if read:  # only Linux tells
            MEMORY.set(read["process_resident_memory_bytes"])
            OPEN_FILES.set(read["process_open_fds"])
            self._grow(CPU_SECONDS, read["process_cpu_seconds_total"])

    async def run(self) -> None:
        """Sample forever, and measure by how much each of the pauses was too long."""
        while True:
            self._try_sample()
            began = perf_counter()
            await asyncio.sleep(SAMPLE_SECONDS)
            LOOP_DELAY.observe(max(0.0, perf_counter() - began - SAMPLE_SECONDS))

    def _try_sample(self) -> None:
        try:
            self.sample()
            self._failures.succeeded()
        except Exception as error:  # a bug in what is read must not end it
            self._failures.failed_unexpectedly(error)


SAMPLER = web.AppKey("sampler", Sampler)
