"""Counts requests by route, method and status. Every request passes here: series are looked up once."""

from __future__ import annotations

from functools import lru_cache
from time import perf_counter
from typing import NamedTuple

from aiohttp import web
from aiohttp.web_urldispatcher import AbstractResource
from prometheus_client import Counter, Histogram

from service.metrics.definitions import REQUEST_SECONDS, REQUESTS

METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
"""Other methods are `other`: clients may send any word."""
UNMATCHED = "unmatched"
MAX_SERIES = 10_000


class Series(NamedTuple):
    """The metrics of one route, method and status."""

    responses: Counter
    seconds: Histogram


@lru_cache(MAX_SERIES)
def series_of(resource: AbstractResource | None, method: str, status: int) -> Series:
    route = (resource.canonical.rstrip("/") or "/") if resource else UNMATCHED
    return Series(REQUESTS.labels(route, method, status), REQUEST_SECONDS.labels(route, method))


def count_response(request: web.BaseRequest, response: web.StreamResponse) -> None:
    """Count a response that was sent, or whose client has gone."""
    method = request.method if request.method in METHODS else "other"
    responses, seconds = series_of(request.get("resource"), method, response.status)
    responses.inc()
    seconds.observe(perf_counter() - request["started_at"])
