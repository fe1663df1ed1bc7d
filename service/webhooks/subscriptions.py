"""Webhooks: where changes are sent, how far each has got, and which process sends to it."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import uuid4

from pymongo import ReturnDocument

from schemas.caller import Role
from schemas.kind import Document
from schemas.values.dates import EPOCH
from service.store import Store

LEASE_SECONDS = 90
"""How long a process keeps a webhook after its last sign of life: longer than one message takes."""
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 5, 4 * 3600
"""Pauses after failures; each is twice as long as the one before."""
GIVE_UP_AFTER = timedelta(days=3)
HEALTHY = {"attempts": 0, "problem": "", "failing_since": None, "is_expired": False}
"""What is stored of failures: how many there were, the last one, the time of the first one, and whether
changes that were to be sent are not kept any more."""


class Subscription(NamedTuple):
    """What a webhook is sent: the address, the query of the changes, and who it sees them as."""

    url: str
    query: str
    role: Role | None = None


class Webhooks:
    """Adds, lists and removes webhooks, and keeps their state."""

    def __init__(self, store: Store) -> None:
        self._webhooks, self._ids, self._now = store.database["webhooks"], store.ids, store.site.now
        self._holder = uuid4().hex

    async def add(self, subscription: Subscription, since: str) -> Document:
        """Add a webhook for all changes after a token; return it with its new secret."""
        secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
        state = {**HEALTHY, "state": "active", "since": since}
        times = {"created_utc": self._now(), "delivered_utc": None, "next_attempt": EPOCH}
        role = subscription.role.value if subscription.role else None
        webhook = {
            "_id": await self._ids.single("webhook"),
            **subscription._asdict(),
            **{"role": role, "secret": secret, "held_until": EPOCH},
            **state,
            **times,
        }
        await self._webhooks.insert_one(webhook)
        return webhook

    async def all(self) -> list[Document]:
        return await self._webhooks.find().sort([("_id", 1)]).to_list(None)

    async def find(self, id: int) -> Document | None:
        return await self._webhooks.find_one({"_id": id})

    async def remove(self, id: int) -> bool:
        return bool((await self._webhooks.delete_one({"_id": id})).deleted_count)

    async def resume(self, id: int, since: str | None = None) -> None:
        """Send to a paused webhook again, at once; with a token only what has changed since then."""
        active = {**HEALTHY, "state": "active", "next_attempt": EPOCH}
        if since:  # what is being sent at this moment must not set the webhook back
            active |= {"since": since, "holder": None, "held_until": EPOCH}
        await self._webhooks.update_one({"_id": id}, {"$set": active})

    async def any_active(self) -> bool:
        return await self._webhooks.find_one({"state": "active"}, {"_id": 1}) is not None

    async def claim(self, busy: Sequence[int], newest: str) -> list[Document]:
        """The webhooks that are behind the newest token, and that this process may send to now, without those
        that it is busy with."""
        free = {"$expr": {"$or": [{"$eq": ["$holder", self._holder]}, {"$lt": ["$held_until", "$$NOW"]}]}}
        due = {"state": "active", "next_attempt": {"$lte": self._now()}, "since": {"$ne": newest}, **free}
        return [
            claimed
            async for found in self._webhooks.find({**due, "_id": {"$nin": list(busy)}})
            if (claimed := await self._renew({**due, "_id": found["_id"]}))
        ]

    async def _renew(self, query: Document, change: Document | None = None) -> Document | None:
        lease = {"$dateAdd": {"startDate": "$$NOW", "unit": "second", "amount": LEASE_SECONDS}}
        stage = {"$set": {"holder": self._holder, "held_until": lease, **literals(change or {})}}
        return await self._webhooks.find_one_and_update(query, [stage], return_document=ReturnDocument.AFTER)

    async def delivered(self, webhook: Document, since: str) -> Document | None:
        """Note that everything up to a token was delivered; None if the webhook is not ours any more."""
        good = {**HEALTHY, "since": since, "delivered_utc": self._now()}
        return await self._renew(self._ours(webhook), good)

    async def passed(self, webhook: Document, since: str) -> Document | None:
        """Note that there was nothing else to deliver up to a token; None if the webhook is another's."""
        return await self._renew(self._ours(webhook), {"since": since})

    async def failed(self, webhook: Document, problem: str) -> None:
        """Plan the next attempt, or give up after a long time."""
        now, first = self._now(), webhook["failing_since"] or self._now()
        change = {"attempts": webhook["attempts"] + 1, "problem": problem, "failing_since": first}
        change["next_attempt"] = now + pause_after(webhook["attempts"])
        if now - first >= GIVE_UP_AFTER:
            change["state"] = "paused"
        await self._renew(self._ours(webhook), change)

    async def pause(self, webhook: Document, problem: str, *, is_expired: bool) -> None:
        """Stop sending until the operator resumes it."""
        since = webhook["failing_since"] or self._now()
        change = {"state": "paused", "problem": problem, "failing_since": since, "is_expired": is_expired}
        await self._renew(self._ours(webhook), change)

    async def release(self) -> None:
        """Let other processes take over."""
        await self._webhooks.update_many({"holder": self._holder}, {"$set": {"held_until": EPOCH}})

    def _ours(self, webhook: Document) -> Document:
        return {"_id": webhook["_id"], "state": "active", "holder": self._holder}


def pause_after(attempts: int) -> timedelta:
    return timedelta(seconds=min(FIRST_PAUSE_SECONDS << min(attempts, 20), LONGEST_PAUSE_SECONDS))


def literals(values: Document) -> dict[str, Any]:
    """Values that a pipeline must not take for expressions."""
    return {name: {"$literal": value} for name, value in values.items()}
