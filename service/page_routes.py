"""Tells the routes of the web pages from those of the API."""

from __future__ import annotations

from aiohttp import web

from config import Settings
from service import metrics


class PageRoutes:
    """All routes outside the paths under which the API and the metrics are served."""

    def __init__(self, settings: Settings) -> None:
        self._programs = (settings.namespace, *settings.aliases, metrics.PATH)

    def has(self, request: web.Request) -> bool:
        # The path of the matched route, not the one that was sent: there is one way to write it.
        resource = request.match_info.route.resource
        path = resource.canonical if resource else ""
        return not any(path == prefix or path.startswith(f"{prefix}/") for prefix in self._programs)
