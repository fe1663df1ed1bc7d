"""Stores concurrent new events in batches, with their outbox entries and the check of embedded copies."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bson import ObjectId
from pymongo.errors import PyMongoError

from schemas.event import EVENT
from schemas.kind import Document
from service.store.counts import Counts
from service.store.debts import Debt
from service.store.epoch import Outdated
from service.store.links.fanout import Fanout
from service.store.links.usage import changed_uses
from service.store.mongo.bulk_writes import Inserts
from service.store.mongo.coalescing import Batcher

log = logging.getLogger("kalends.store")
Epochs = Mapping[int, ObjectId]
"""Id of an event -> the version stamp at which its embedded copies are current."""
NONE: Epochs = {}
AT_ONCE = 2
"""Batches in flight: the next is sent while the last is being stored."""
MOST = 24
"""Maximum events per batch: one batch of all waiting events would leave this process idle, then MongoDB."""


@dataclass(frozen=True, eq=False)
class Newcomer:
    """An event to store, and the version stamp of its links if they come from a cache."""

    event: Document
    epoch: ObjectId | None


@dataclass(frozen=True)
class Fate:
    """The result: why the event was refused, or whether linked records have changed meanwhile."""

    refused: Exception | None
    is_stale: bool


class NewEvents:
    """Stores events in batches; each succeeds or fails independently of the others."""

    def __init__(self, inserts: Inserts, copies: Fanout, counts: Counts) -> None:
        self._inserts, self._copies, self._counts = inserts, copies, counts
        self._batch = Batcher[Newcomer, Fate](self._store, AT_ONCE, MOST)

    async def one(self, event: Document, epoch: ObjectId | None) -> bool:
        """Store an event; raises DuplicateKeyError if its slug is taken, Outdated if the version stamp has
        changed. Return whether linked records have changed while it was stored."""
        fate = await self._batch.load(Newcomer(event, epoch))
        if fate and fate.refused:
            raise fate.refused
        return bool(fate and fate.is_stale)

    async def _store(self, asked: Sequence[Newcomer]) -> dict[Newcomer, Fate]:
        epochs = {one.event["_id"]: one.epoch for one in asked if one.epoch}
        refused, stale = await self.many([one.event for one in asked], epochs)
        ids = ((one, one.event["_id"]) for one in asked)
        return {one: Fate(refused.get(id), id in stale) for one, id in ids}

    async def many(
        self, events: Sequence[Document], epochs: Epochs = NONE
    ) -> tuple[dict[int, Exception], set[int]]:
        """Store events; return errors by event id, and the ids of events whose linked records changed."""
        owed = [owing(event) for event in events]
        outdated, _ = await asyncio.gather(self._outdated(epochs), self._counts.debts.note(owed))
        current = [event for event in events if event["_id"] not in outdated]
        refused = await self._inserts.many(EVENT.plural, current) | {id: Outdated() for id in outdated}
        stored = [event for event in current if event["_id"] not in refused]
        void = [debt.mark for debt in owed if debt.event in refused and debt.changes]
        return refused, await self.follow(stored, void, epochs)

    async def follow(
        self, events: Sequence[Document], void: Sequence[ObjectId] = (), epochs: Epochs = NONE
    ) -> set[int]:
        """After events are written: delete void outbox entries and update outdated copies. If this fails, it
        is left to background maintenance. Return the ids of events whose linked records have changed."""
        self._counts.keep_up()
        try:
            await self._counts.debts.take([], void)
            unsure = await self._outdated(epochs) | {event["_id"] for event in events} - epochs.keys()
            return await self._copies.refresh(event for event in events if event["_id"] in unsure)
        except PyMongoError as error:
            log.warning("follow-up of new events failed; left to the next maintenance run: %s", error)
            return set()

    async def _outdated(self, epochs: Epochs) -> set[int]:
        """The ids of the events whose version stamp is outdated."""
        now = await self._copies.epoch.now() if epochs else None
        return {id for id, epoch in epochs.items() if epoch != now}


def owing(event: Document) -> Debt:
    """Create the outbox entry of a new event, and set its mark in the event."""
    debt = Debt(event["_id"], 1, changed_uses(None, event))
    event["debt"] = debt.mark
    return debt
