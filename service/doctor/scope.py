"""What checks work with: the database, and the parts of the store that repairs use."""

from __future__ import annotations

import asyncio
from collections.abc import Collection as Many
from contextlib import suppress
from datetime import timedelta
from time import monotonic
from typing import NamedTuple

from pymongo.errors import OperationFailure

from schemas.errors import Problem
from schemas.kind import Document
from service.mongo.client import LENIENT, MALFORMED, Collection
from service.search import Vocabulary
from service.store import Store
from service.store.links.category_tree import CategoryTree
from service.store.links.fanout import ABANDONED_AFTER, record_of
from service.store.records.slugs import Slugs

POLL_SECONDS = 0.25
RESUMED_AFTER = ABANDONED_AFTER + timedelta(seconds=10)
"""A fan-out job that is older is not being resumed by the maintenance of any process."""


class Inferred(NamedTuple):
    """The number of a word, and the record whose numbers tell it."""

    number: int
    record: tuple[str, int]


class Scope:
    """The database that is checked."""

    def __init__(self, store: Store) -> None:
        self.store, self.site, self.database, self.fanout = store, store.site, store.database, store.fanout
        self.tree, self.slugs = CategoryTree(store.database, store.site, store.fanout), Slugs(store.database)
        self.pending: dict[tuple[str, int], Document] = {}
        """Changes that would repair records, so that what follows from the damage is not found as well."""
        self.numbers: dict[str, int] = {}
        """Numbers of words, cached while records are checked."""
        self.inferred: dict[str, Inferred] = {}
        """Numbers that words should have."""

    def collection(self, name: str) -> Collection:
        return self.database[name].with_options(codec_options=LENIENT)

    def vocabulary(self) -> Vocabulary:
        """A vocabulary that has nothing in its cache."""
        return Vocabulary(self.database, self.store.ids)

    async def catch_up(self, records: Many[str] = ()) -> None:
        """Wait for the background work: count and log all changes, and let fan-out jobs of records finish
        that are not too old for that."""
        with suppress(*MALFORMED, OperationFailure, Problem):  # damage that other checks find
            await self.store.log.update()
        deadline = monotonic() + RESUMED_AFTER.total_seconds()
        while records and monotonic() < deadline and await self._have_jobs(records):  # noqa: ASYNC110 - jobs of others
            await asyncio.sleep(POLL_SECONDS)

    async def _have_jobs(self, records: Many[str]) -> bool:
        young = [job for job, age in await self.fanout.jobs_with_ages() if age <= RESUMED_AFTER]
        return not {record_of(job) for job in young if isinstance(job["_id"], str)}.isdisjoint(records)
