"""Several processes on one port, kept by gunicorn; run by `serve` as a program of its own."""

from __future__ import annotations

import os
import sys
from contextlib import AsyncExitStack
from typing import Any

from aiohttp import web
from gunicorn.app.base import BaseApplication

from config import Settings, read_settings
from config.logs import configure
from service.serve import GRACE, KEEPALIVE, announce, ready_app


class Workers(BaseApplication):  # type: ignore[misc]
    """Gunicorn, told everything by the settings."""

    def __init__(self, settings: Settings, descriptor: int) -> None:
        self._settings = settings
        self._descriptor = descriptor
        super().__init__()

    def load_config(self) -> None:
        chosen: dict[str, Any] = {
            "bind": f"fd://{self._descriptor}",
            "workers": self._settings.workers,
            "worker_class": "aiohttp.GunicornWebWorker",
            "keepalive": KEEPALIVE,
            "graceful_timeout": int(GRACE),
            "loglevel": "warning",
            "proc_name": "kalends",
            "when_ready": lambda _: announce(self._settings),
        }
        for name, value in chosen.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        async def application() -> web.Application:
            configure(self._settings.log_level)
            stack = AsyncExitStack()
            app = await ready_app(self._settings, stack)

            async def close(_: web.Application) -> None:
                await stack.aclose()

            app.on_cleanup.append(close)
            return app

        return application


if __name__ == "__main__":
    Workers(read_settings(os.environ, {}), int(sys.argv[1])).run()
