"""Ids of requests: in the answer's X-Request-Id and in the log."""

from __future__ import annotations

import itertools
import secrets
import time

from aiohttp import web


class RequestIds:
    """Makes ids that no other process makes. Each process needs an object of its own, made after a fork."""

    def __init__(self) -> None:
        self._process, self._numbers = secrets.token_hex(4), itertools.count(1)

    def mark(self, request: web.BaseRequest) -> None:
        """Gives a request its id, in the headers that its answer is sent with, and notes when it came."""
        # The event loop's own clock counts whole milliseconds.
        request["began"] = time.perf_counter()
        request["headers"] = {"X-Request-Id": f"{self._process}{next(self._numbers):08x}"}


REQUEST_IDS = web.AppKey("request_ids", RequestIds)


def id_of(request: web.BaseRequest) -> str:
    return str(request.get("headers", {}).get("X-Request-Id", "-"))
