"""New events that are stored at the same time: noted together, stored together, looked after together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bson import ObjectId
from pymongo.errors import PyMongoError

from schemas.event import EVENT
from schemas.kind import Document
from service.store.batches import Batch
from service.store.copies import Copies
from service.store.counts import Counts
from service.store.debts import Debt
from service.store.epoch import Outdated
from service.store.inserts import Inserts
from service.store.usage import changed_uses

log = logging.getLogger("kalends.store")
Epochs = Mapping[int, ObjectId]
"""Id of an event -> the epoch in which its copies of other records are right."""
NONE: Epochs = {}
AT_ONCE = 2
"""Batches on the way: the next is being sent while the last is being stored."""
MOST = 24
"""Events in a batch: one of all that wait would leave this process idle first, and MongoDB after it."""


@dataclass(frozen=True, eq=False)
class Newcomer:
    """An event to be stored, and the epoch that its links are of if they may be outdated."""

    event: Document
    epoch: ObjectId | None


@dataclass(frozen=True)
class Fate:
    """What became of it: why it was refused, or whether what it links to has changed meanwhile."""

    refused: Exception | None
    is_stale: bool


class NewEvents:
    """Each event is stored or refused by itself, whatever becomes of those beside it."""

    def __init__(self, inserts: Inserts, copies: Copies, counts: Counts) -> None:
        self._inserts, self._copies, self._counts = inserts, copies, counts
        self._batch = Batch[Newcomer, Fate](self._store, AT_ONCE, MOST)

    async def one(self, event: Document, epoch: ObjectId | None) -> bool:
        """Stores an event; DuplicateKeyError if its slug is taken, Outdated if the epoch has ended. True if
        what it links to has changed while it was stored."""
        fate = await self._batch.ask(Newcomer(event, epoch))
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
        """Stores events. Answers, by their ids, why some are refused, and which show what has changed."""
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
        """What is to be done when events are written, and some debts turned out to be void. What fails is
        left to whoever counts what was noted. The ids of events whose links have changed meanwhile."""
        self._counts.keep_up()
        try:
            await self._counts.debts.take([], void)
            unsure = await self._outdated(epochs) | {event["_id"] for event in events} - epochs.keys()
            return await self._copies.refresh(event for event in events if event["_id"] in unsure)
        except PyMongoError as error:
            log.warning("left for the next sweep: %s", error)
            return set()

    async def _outdated(self, epochs: Epochs) -> set[int]:
        """The events whose links are of an epoch that has ended."""
        now = await self._copies.epoch.now() if epochs else None
        return {id for id, epoch in epochs.items() if epoch != now}


def owing(event: Document) -> Debt:
    """What a new event changes in the counters of what it links to; it bears the mark of it."""
    debt = Debt(event["_id"], 1, changed_uses(None, event))
    event["debt"] = debt.mark
    return debt
