"""Serving: a database, a socket, the application, and a clean end."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from aiohttp import web

from config import SettingError, Settings
from service.app import create_app
from service.demo import fill
from service.embedded import embedded_mongod, running_uri
from service.site import site_of
from service.store import Store, open_store, sweeping

GRACE = 3.0
"""Seconds that requests under way get when the service is told to stop."""


@asynccontextmanager
async def database_uri(settings: Settings, *, shared: bool = True) -> AsyncIterator[str]:
    """The configured MongoDB, the embedded one of a running service, or an embedded one of our own."""
    running = running_uri(settings.data_dir) if shared and not settings.mongodb_uri else None
    if uri := settings.mongodb_uri or running:
        yield uri
        return
    async with embedded_mongod(settings.data_dir) as uri:
        yield uri


@asynccontextmanager
async def opened(settings: Settings, *, shared: bool = True) -> AsyncIterator[Store]:
    """The store that the settings name."""
    async with (
        database_uri(settings, shared=shared) as uri,
        open_store(uri, settings.database, site_of(settings)) as store,
    ):
        yield store


def listening(settings: Settings) -> socket.socket:
    """The socket, taken before anything else starts, so that a busy port is told at once."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=1024)
    except OSError as error:
        raise SettingError(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror or error}"
        ) from None


async def serve(settings: Settings, *, demo: bool = False) -> None:
    site_of(settings)
    taken = listening(settings)
    settings = replace(settings, port=taken.getsockname()[1])
    stop = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(opened(settings, shared=False))
        if demo:
            await fill(store)
        await stack.enter_async_context(sweeping(store))
        runner = web.AppRunner(
            create_app(settings, store), access_log=None, keepalive_timeout=20, shutdown_timeout=GRACE
        )
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.SockSite(runner, taken).start()
        announce(settings)
        await stop.wait()
        print("Stopping.", file=sys.stderr)


def announce(settings: Settings) -> None:
    api = settings.address + settings.namespace
    print(
        f"Kalends is ready.\n"
        f"  API   {api}/\n"
        f"  Docs  {settings.address}/docs\n"
        f"  Try   curl '{api}/events'\n"
        f"Writes: {WRITES[settings.access]}. Stop with Ctrl-C.",
        flush=True,
    )


WRITES = {
    "open": "open to every caller on this machine",
    "token": "with a token (kalends token create --role editor --name me)",
}
