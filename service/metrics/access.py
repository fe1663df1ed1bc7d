"""Who may read the metrics: in open mode everybody, in token mode callers with any valid token."""

from __future__ import annotations

import asyncio

from aiohttp import web
from cachetools import LRUCache
from pymongo.errors import PyMongoError

from config import Settings
from schemas.caller import Caller
from schemas.errors import Unauthenticated, Unavailable
from service.http.authentication import anonymous_caller, sent_token
from service.tokens import Tokens, digest

MAX_WAIT_SECONDS = 1.0
MAX_REMEMBERED = 100


class Scrapers:
    """Identifies callers. While MongoDB cannot be asked, or is being restored, a token that was accepted
    before is accepted: then the metrics are needed most."""

    def __init__(self, settings: Settings, tokens: Tokens) -> None:
        self._anonymous, self._tokens = anonymous_caller(settings.auth_mode), tokens
        self._accepted: LRUCache[str, Caller] = LRUCache(MAX_REMEMBERED)

    async def caller(self, request: web.Request) -> Caller:
        """The caller of a request; raises Unauthenticated unless they may read the metrics."""
        if (token := sent_token(request)) is not None:
            return await self._caller_of(token)
        if self._anonymous.role is None:
            raise Unauthenticated
        return self._anonymous

    async def _caller_of(self, token: str) -> Caller:
        key = digest(token)
        try:
            # Not a timeout of the driver: it would also end reads that other requests wait for.
            async with asyncio.timeout(MAX_WAIT_SECONDS):
                caller = await self._tokens.caller(token)
        except (PyMongoError, TimeoutError, Unavailable):
            if caller := self._accepted.get(key):
                return caller
            raise
        if caller is None:
            self._accepted.pop(key, None)
            raise Unauthenticated
        self._accepted[key] = caller
        return caller
