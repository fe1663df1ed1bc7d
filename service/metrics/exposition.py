"""`GET /metrics`: the text format of Prometheus, or OpenMetrics for those who ask for it."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from aiohttp import web
from prometheus_client.exposition import choose_encoder

from handlers.records import CALLER
from handlers.responses.prepared import OutgoingResponse, PreparedResponse
from service.metrics import PATH
from service.metrics.access import Scrapers
from service.metrics.processes import scraped_registry
from service.metrics.sampling import Sampler


def routes(scrapers: Scrapers, sampler: Sampler) -> list[web.RouteDef]:
    # While MongoDB does not answer, the threads of the event loop all wait for it.
    threads = ThreadPoolExecutor(1, "metrics")

    async def scrape(request: web.Request) -> web.StreamResponse:
        request[CALLER] = await scrapers.caller(request)
        sampler.sample()
        # In a thread: with many routes and workers it takes tens of milliseconds.
        loop, accept = asyncio.get_running_loop(), request.headers.get("Accept", "")
        body, content_type = await loop.run_in_executor(threads, expose, accept)
        return OutgoingResponse(PreparedResponse(body, {"Content-Type": content_type}))

    return [web.get(PATH, scrape)]


def expose(accept: str) -> tuple[bytes, str]:
    """The metrics in the best format that an Accept header allows, and its content type."""
    try:
        encode, content_type = choose_encoder(accept)
    except (TypeError, ValueError):  # the library does not check that a version is a number
        encode, content_type = choose_encoder("")
    return encode(scraped_registry()), content_type
