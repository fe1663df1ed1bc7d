"""Serving: a database, a socket, the application, and a clean end."""

from __future__ import annotations

import asyncio
import os
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
from service.guard import guarded
from service.site import site_of
from service.store import Store, open_store, sweeping

KEEPALIVE = 20
READING_MS = 30_000
"""Milliseconds that an answer may wait for a client that does not read it."""
GRACE = 2.0
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
async def opened(settings: Settings) -> AsyncIterator[Store]:
    """The store that the settings name, beside a running service or without one."""
    async with (
        database_uri(settings) as uri,
        open_store(uri, settings.database, site_of(settings)) as store,
    ):
        yield store


def listening(settings: Settings) -> socket.socket:
    """The socket, taken before anything else starts, so that a busy port is told at once."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        taken = socket.create_server((settings.host, settings.port), family=family, backlog=1024)
    except OSError as error:
        raise SettingError(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror or error}"
        ) from None
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # Connections inherit it: a client that stops reading its answer is cut off by the kernel.
        taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, READING_MS)
    return taken


async def serve(settings: Settings, *, demo: bool = False) -> None:
    """Serves until a signal says stop."""
    site_of(settings)
    with listening(settings) as taken:
        settings = replace(settings, port=taken.getsockname()[1])
        stop = asyncio.Event()
        for name in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(name, stop.set)
        async with database_uri(settings, shared=False) as uri:
            settings = replace(settings, mongodb_uri=uri)
            if demo:
                async with opened(settings) as store:
                    await fill(store)
            run = one_process if settings.workers == 1 else several_processes
            await run(settings, taken, stop)


async def one_process(settings: Settings, taken: socket.socket, stop: asyncio.Event) -> None:
    async with AsyncExitStack() as stack:
        app = await ready_app(settings, stack)
        runner = web.AppRunner(app, access_log=None, keepalive_timeout=KEEPALIVE, shutdown_timeout=GRACE)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.SockSite(runner, taken).start()
        announce(settings)
        await stop.wait()


async def ready_app(settings: Settings, stack: AsyncExitStack) -> web.Application:
    """The application with a store of its own; both end with the stack."""
    uri, site = settings.mongodb_uri, site_of(settings)
    store = await stack.enter_async_context(open_store(uri, settings.database, site, patient=True))
    await stack.enter_async_context(sweeping(store))
    return create_app(settings, store)


async def several_processes(settings: Settings, taken: socket.socket, stop: asyncio.Event) -> None:
    """Gunicorn keeps the workers: it replaces dead ones, and renews all of them on SIGHUP."""
    command = [sys.executable, "-m", "service.workers", str(taken.fileno())]
    environment = os.environ | settings.variables()
    manager = await asyncio.create_subprocess_exec(
        *guarded(*command), env=environment, pass_fds=[taken.fileno()], start_new_session=True
    )
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, manager.send_signal, signal.SIGHUP)
    ended = asyncio.create_task(manager.wait())
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not ended.done():
        manager.terminate()
        await ended
    elif manager.returncode:
        raise SettingError(f"the workers ended with status {manager.returncode}")


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
