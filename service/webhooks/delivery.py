"""Delivers changes to webhooks, in their order, while the service runs.

Every process looks for webhooks that are behind the change log and that no other process sends to. It sends
one change after the other, and notes each that was accepted. After a failure the webhook waits, with all
later changes; so no change overtakes another one, and after a crash at most one is sent twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pymongo
from pymongo.errors import PyMongoError

from config import Settings
from handlers.changes import ChangesHandlers, ReadChanges
from handlers.responses import to_json
from schemas.caller import PUBLIC
from schemas.errors import InvalidFields, Problem, Problems, TokenExpired, Unavailable
from schemas.kind import Document, RenderContext
from schemas.results import VisibleChange
from schemas.values.dates import show
from service.background import background_task
from service.failures import Failures
from service.metrics.definitions import DELIVERIES
from service.store import Store
from service.webhooks.queries import caller_of, query_of, reason_of
from service.webhooks.sending import Message, Sender, open_sender
from service.webhooks.subscriptions import Webhooks

log = logging.getLogger("kalends.webhooks")
READ_AT_ONCE = 50
"""Rows of the change log that are looked through for the next change to send."""
PAUSE_SECONDS = 5.0
"""Longest pause between two looks for webhooks that are due."""
RELEASE_SECONDS = 1.0
"""How long shutdown waits for MongoDB to let other processes take over."""


class Deliverer:
    """Sends to all webhooks of which this process holds the lease."""

    def __init__(self, store: Store, changes: ChangesHandlers, sender: Sender) -> None:
        self._store, self._changes, self._sender = store, changes, sender
        self._webhooks = Webhooks(store)
        self._running: dict[int, asyncio.Task[None]] = {}
        self._failures = Failures(log, "sending webhooks")

    async def run(self) -> None:
        try:
            while True:
                await self._round()
        finally:
            for task in self._running.values():
                task.cancel()
            await asyncio.gather(*self._running.values(), return_exceptions=True)
            with suppress(PyMongoError), pymongo.timeout(RELEASE_SECONDS):  # then the leases expire
                await self._webhooks.release()

    async def _round(self) -> None:
        """Start sending what is due, then wait until something changes; after a failure, for a while."""
        try:
            await self._start_and_wait()
        except (PyMongoError, Problem) as error:
            self._failures.failed(error)
        except Exception as error:  # a bug in one round must not stop later ones
            self._failures.failed_unexpectedly(error)
        else:
            return
        await asyncio.sleep(PAUSE_SECONDS)

    async def _start_and_wait(self) -> None:
        position = self._store.feed.position
        if not self._store.started or not await self._webhooks.any_active():
            await asyncio.sleep(PAUSE_SECONDS)
            return
        await self._start_due()
        with suppress(TimeoutError):  # nothing has changed
            await asyncio.wait_for(self._store.wait_for_changes(position), PAUSE_SECONDS)
        self._failures.succeeded()

    async def _start_due(self) -> None:
        self._running = {id: task for id, task in self._running.items() if not task.done()}
        newest = (await self._store.changes([], {}, PUBLIC, Problems())).next
        for webhook in await self._webhooks.claim(list(self._running), newest):
            self._running[webhook["_id"]] = asyncio.create_task(self._deliver_or_log(webhook))

    async def _deliver_or_log(self, webhook: Document) -> None:
        try:
            await self._deliver(webhook)
        except (PyMongoError, Unavailable) as error:
            self._failures.failed(error)
        except Exception:  # a bug must not stop the other webhooks
            log.exception("webhook %d failed", webhook["_id"])

    async def _deliver(self, webhook: Document) -> None:
        """Send all changes that the webhook is behind."""
        has_more = True
        while has_more:
            try:
                page, changes = await self._read(webhook)
            except (TokenExpired, InvalidFields) as problem:
                is_expired = isinstance(problem, TokenExpired)
                await self._webhooks.pause(webhook, reason_of(problem), is_expired=is_expired)
                return
            if changes:  # later ones are read again: they are sent as they are then
                has_more, following = True, await self._send(webhook, *changes[0])
            else:
                has_more, following = page.has_more, await self._webhooks.passed(webhook, page.next)
            if following is None:
                return
            webhook = following

    async def _read(self, webhook: Document) -> ReadChanges:
        query = query_of(webhook["query"], self._store.site)
        caller = caller_of(webhook["role"])
        context = RenderContext(self._store.site, caller)
        sent = query | {"since": webhook["since"], "limit": READ_AT_ONCE}
        return await self._changes.read(sent, Problems(), context)

    async def _send(self, webhook: Document, change: VisibleChange, body: bytes) -> Document | None:
        """Send one change; return the webhook if it was accepted and is still ours."""
        message = message_of(webhook, change, body)
        if problem := await self._sender.send(webhook["url"], webhook["secret"], message):
            DELIVERIES.labels("failed").inc()
            log.info("webhook %d: %s", webhook["_id"], problem)
            await self._webhooks.failed(webhook, problem)
            return None
        DELIVERIES.labels("accepted").inc()
        return await self._webhooks.delivered(webhook, change.token)


def message_of(webhook: Document, change: VisibleChange, body: bytes) -> Message:
    head = {
        "type": f"{change.kind.plural}.{change.action}",
        "timestamp": show(change.at).replace(" ", "T") + "Z",
    }
    return Message(f"{webhook['_id']}.{change.token}", to_json(head)[:-1] + b',"data":' + body + b"}")


@asynccontextmanager
async def delivering(store: Store, changes: ChangesHandlers, settings: Settings) -> AsyncIterator[None]:
    """Send to webhooks while open."""
    async with (
        open_sender(settings.webhook_networks) as sender,
        background_task(Deliverer(store, changes, sender).run()),
    ):
        yield
