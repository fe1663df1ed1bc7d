"""Access tokens: shown once, stored only as a digest."""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from cachetools import TTLCache
from pymongo.errors import PyMongoError

from schemas.caller import Caller, Role
from service.background import BackgroundTasks
from service.changes.feed import ChangeFeed
from service.failures import brief
from service.mongo.client import Database
from service.mongo.id_blocks import Ids

TOKEN_CACHE_SECONDS = 3.0
"""Seconds that a token look-up is cached; a revoked or expired token works at most this much longer."""
MAX_CACHED_TOKENS = 1000
USE_RECORDED_EVERY = timedelta(minutes=10)
"""After every write all processes look for changes, so the time of last use is written rarely."""

log = logging.getLogger("kalends.tokens")


class Issued(NamedTuple):
    """A new token; it cannot be read again later."""

    id: int
    token: str


def utc_now() -> datetime:
    """The current time in whole seconds, without a time zone, as it is stored."""
    return datetime.now(UTC).replace(tzinfo=None, microsecond=0)


def digest(token: str) -> str:
    # A token has 256 random bits and cannot be guessed: a fast hash is enough.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class Tokens:
    """Creates, lists, revokes and verifies access tokens."""

    def __init__(self, database: Database, ids: Ids, feed: ChangeFeed, tasks: BackgroundTasks) -> None:
        self._tokens = database["tokens"]
        self._ids, self._feed = ids, feed
        self._known: TTLCache[str, Caller | None] = TTLCache(MAX_CACHED_TOKENS, TOKEN_CACHE_SECONDS)
        self._tasks = tasks
        self.hits = self.misses = 0

    async def create(self, name: str, role: Role) -> str:
        """Create a token that never expires."""
        return (await self.issue(name, role)).token

    async def issue(self, name: str, role: Role, expires: datetime | None = None) -> Issued:
        made = Issued(await self._ids.single("token"), f"kal_{secrets.token_urlsafe(32)}")
        times = {"created_utc": utc_now(), "expires_utc": expires, "last_used_utc": None}
        known = {"_id": made.id, "name": name, "role": role.value, "digest": digest(made.token)}
        await self._tokens.insert_one(known | times)
        return made

    async def list(self) -> list[dict[str, Any]]:
        return await self._tokens.find({}, {"digest": 0}).sort([("_id", 1)]).to_list(None)

    async def revoke(self, id: int) -> bool:
        return bool((await self._tokens.delete_one({"_id": id})).deleted_count)

    async def caller(self, token: str) -> Caller | None:
        """The caller that a token belongs to; None if it is unknown, revoked or expired."""
        key = digest(token)
        with suppress(KeyError):  # not in the cache
            known = self._known[key]
            self.hits += 1
            return known
        self.misses += 1
        found = await self._feed.confirm(lambda: self._tokens.find_one({"digest": key}))
        caller = None
        if found and hmac.compare_digest(found["digest"], key) and not _is_expired(found):
            role = Role(found["role"])
            caller = Caller(found["_id"], role, bypasses_passwords=role in (Role.EDITOR, Role.ADMIN))
            self._note_use(found)
        self._known[key] = caller
        return caller

    def forget(self) -> None:
        """Drop all cached look-ups."""
        self._known.clear()

    def _note_use(self, found: Mapping[str, Any]) -> None:
        """Record the time of last use in the background: no request waits for it or fails with it."""
        now, last = utc_now(), found.get("last_used_utc")
        if last is None or now - last >= USE_RECORDED_EVERY:
            self._tasks.start(self._write_use(found["_id"], last, now), "recording the use of a token")

    async def _write_use(self, id: int, last: datetime | None, now: datetime) -> None:
        try:
            # Only if no other process has recorded it meanwhile.
            await self._tokens.update_one(
                {"_id": id, "last_used_utc": last}, {"$set": {"last_used_utc": now}}
            )
        except PyMongoError as error:
            log.debug("the use of token %d was not recorded: %s", id, brief(error))


def _is_expired(found: Mapping[str, Any]) -> bool:
    expires = found.get("expires_utc")
    return expires is not None and bool(expires <= utc_now())
