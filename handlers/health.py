"""Liveness and readiness endpoints."""

from __future__ import annotations

from aiohttp import web

from handlers.responses import json_response
from handlers.store_protocol import Store


def routes(store: Store) -> list[web.RouteDef]:
    async def live(request: web.Request) -> web.StreamResponse:
        return json_response({"status": "live"})

    async def ready(request: web.Request) -> web.StreamResponse:
        if await store.is_alive():
            return json_response({"status": "ready"})
        return json_response({"status": "waiting"}, 503, {"Retry-After": "5"})

    return [web.get("/health/live", live), web.get("/health/ready", ready)]
