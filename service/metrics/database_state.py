"""Asks MongoDB every few seconds what only it knows: fan-out jobs that are open, and the last write."""

from __future__ import annotations

import asyncio
import logging
from math import nan

import pymongo
from pymongo.errors import PyMongoError

from service.failures import Failures
from service.metrics.definitions import FANOUT_JOBS, FEED_LAG, MONGODB_UP
from service.mongo.write_clock import read_clock
from service.store import Store

log = logging.getLogger("kalends.metrics")
LOOK_SECONDS = 5.0
MAX_WAIT_SECONDS = 2.0


async def observe_database(store: Store) -> None:
    """Keep the metrics current, forever. What is not known is NaN: the last value would look like a fact."""
    failures = Failures(log, "reading the state of MongoDB")
    while True:
        try:
            async with asyncio.timeout(MAX_WAIT_SECONDS):
                jobs, lag = await read_state(store)
            is_up = 1.0
            failures.succeeded()
        except (PyMongoError, TimeoutError):
            jobs, lag, is_up = nan, nan, 0.0
        except Exception as error:  # a bug must not end it
            jobs, lag, is_up = nan, nan, nan
            failures.failed_unexpectedly(error)
        FANOUT_JOBS.set(jobs)
        FEED_LAG.set(lag)
        MONGODB_UP.set(is_up)
        await asyncio.sleep(LOOK_SECONDS)


async def read_state(store: Store) -> tuple[float, float]:
    """The number of fan-out jobs that are open, and the seconds that the change feed is behind."""
    with pymongo.timeout(MAX_WAIT_SECONDS):
        jobs = await store.database["fanout_jobs"].count_documents({})
        last_write = (await asyncio.to_thread(read_clock, store.database.delegate)).time
    has_begun = store.feed.time.time > 0
    return jobs, max(0, last_write.time - store.feed.time.time) if has_begun else nan
