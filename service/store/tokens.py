"""Access tokens: shown once, kept only as a digest."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from typing import Any

from schemas.caller import Caller, Role
from service.store.client import Database
from service.store.ids import Ids

FRESH = 3.0
"""Seconds that a process trusts what it knows of a token; a revoked one ends within them."""
CACHED = 1000


def digest(token: str) -> str:
    # A token has 256 random bits: a fast hash is enough, there is nothing to guess.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class Tokens:
    """Makes, lists and revokes tokens, and knows whose a sent one is."""

    def __init__(self, database: Database, ids: Ids) -> None:
        self._tokens = database["tokens"]
        self._ids = ids
        self._known: dict[str, tuple[float, Caller | None]] = {}

    async def create(self, name: str, role: Role) -> str:
        token = f"kal_{secrets.token_urlsafe(32)}"
        id = await self._ids.next("token")
        await self._tokens.insert_one({"_id": id, "name": name, "role": role.value, "digest": digest(token)})
        return token

    async def list(self) -> list[dict[str, Any]]:
        return await self._tokens.find({}, {"digest": 0}).sort([("_id", 1)]).to_list(None)

    async def revoke(self, id: int) -> bool:
        return bool((await self._tokens.delete_one({"_id": id})).deleted_count)

    async def caller(self, token: str) -> Caller | None:
        """Whose token this is; None for an unknown or revoked one."""
        key = digest(token)
        until, known = self._known.get(key, (0.0, None))
        if time.monotonic() < until:
            return known
        found = await self._tokens.find_one({"digest": key})
        caller = None
        if found and hmac.compare_digest(found["digest"], key):
            role = Role(found["role"])
            caller = Caller(found["_id"], role, unlocks=role in (Role.EDITOR, Role.ADMIN))
        if len(self._known) >= CACHED:
            self._known.clear()
        self._known[key] = (time.monotonic() + FRESH, caller)
        return caller
