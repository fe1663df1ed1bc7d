"""Request ids, sent as X-Request-Id and written to the log."""

from __future__ import annotations

import itertools
import secrets
import time
from contextvars import ContextVar

from aiohttp import web

CURRENT_ID: ContextVar[str] = ContextVar("request_id", default="-")
"""The id of the request for which this task or thread works; `-` for background work."""


class RequestIds:
    """Generates ids that are unique across processes. Each process must create its own, after the fork."""

    def __init__(self) -> None:
        self._process, self._numbers = secrets.token_hex(4), itertools.count(1)

    def assign(self, request: web.BaseRequest) -> None:
        """Assign an id to a request, in the headers of its future response, and record its start time."""
        # The event loop's clock has a resolution of one millisecond.
        request["started_at"], request["unreadable"] = time.perf_counter(), False
        id = f"{self._process}{next(self._numbers):08x}"
        request["headers"] = {"X-Request-Id": id}
        CURRENT_ID.set(id)


REQUEST_IDS = web.AppKey("request_ids", RequestIds)


def id_of(request: web.BaseRequest) -> str:
    return str(request.get("headers", {}).get("X-Request-Id", "-"))
