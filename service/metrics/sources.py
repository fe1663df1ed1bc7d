"""Which parts of the process the metrics are read from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from handlers.records import Caches
from service.http.in_flight import InFlight
from service.metrics.definitions import IN_FLIGHT, UNLOGGED
from service.metrics.sampling import CountedBatches, CountedCache, Sampler
from service.store import Store


def sampler_of(store: Store, caches: Caches, in_flight: InFlight) -> Sampler:
    sampler = Sampler()
    for name, cache in caches_of(store, caches).items():
        sampler.watch_cache(name, cache)
    for name, batches in batches_of(store).items():
        sampler.watch_batches(name, batches)
    for state in in_flight.count():
        sampler.watch_gauge(IN_FLIGHT.labels(state), partial(number_of, in_flight, state))
    sampler.watch_gauge(UNLOGGED, lambda: len(store.feed.unlogged))
    return sampler


def number_of(in_flight: InFlight, state: str) -> int:
    return in_flight.count()[state]


def caches_of(store: Store, caches: Caches) -> Mapping[str, CountedCache]:
    return {
        "pages": caches.pages,
        "fragments": caches.fragments,
        "records": caches.records,
        "histograms": store.lists.totals,
        "filters": store.resolver,
        "tokens": store.tokens,
    }


def batches_of(store: Store) -> Mapping[str, Sequence[CountedBatches]]:
    return {
        "changes": [store.feed.batcher],
        "lists": [store.lists.finder.batcher],
        "circles": [store.resolver.circles],
        "heads": [store.reader.heads.batcher],
        "records": [store.reader.records.batcher],
        "creations": list(store.creator.batchers.values()),
        "updates": [store.updater.batcher],
        "words": [store.vocabulary.batcher],
    }
