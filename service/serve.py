"""`kalends serve`: open the database and the socket, run the application, shut down cleanly."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from aiohttp import web

from config import SettingError, Settings
from config.settings import PREFIX
from service.access import stranger
from service.announcing import announcing
from service.app import create_app
from service.database import located
from service.demo import fill_demo
from service.door import Door
from service.ending import Ending, Haste
from service.guard import guarded
from service.protocol import Runner
from service.site import site_of
from service.store import maintaining, open_store
from service.store.mongo.client import connect
from service.traffic import TRAFFIC

KEEPALIVE = 20
READING_MS = 30_000
"""Milliseconds after which a client that does not read its response is disconnected."""
BACKLOG = 1024
GIVING_UP = 0.5
"""Seconds that aborted requests get to clean up."""
COLLECTING = (5000, 20, 100)
"""Garbage collection thresholds above Python's defaults: requests create few reference cycles."""
TAKING_TURNS = 0.0003
"""Thread switch interval in seconds, so that the MongoDB driver's threads get the GIL soon. With Python's
default of 0.005 the next query would wait until the last results are rendered, and the process would then be
idle until MongoDB responds."""

SOURCE = Path(__file__).parent.parent


class WorkersEnded(Exception):
    """The workers have exited without being asked to."""


def listening(settings: Settings) -> socket.socket:
    """The listening socket, bound before anything else starts so that a port in use is reported at once."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        taken = socket.create_server((settings.host, settings.port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise SettingError(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror or error}"
        ) from None
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # Accepted connections inherit it: the kernel drops clients that stop reading their response.
        taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, READING_MS)
    return taken


async def serve(settings: Settings, *, demo: bool = False) -> None:
    """Serve until a signal requests shutdown."""
    site_of(settings)
    with listening(settings) as taken:
        settings = replace(settings, port=taken.getsockname()[1])
        ending = Ending()
        heed_signals(ending)
        async with located(settings, shared=False) as location:
            settings = replace(settings, mongodb_uri=location.uri)
            connect(location.uri).close()  # report an invalid URI at once, in one line
            if demo:
                await fill_demo(location, site_of(settings))
            run = one_process if settings.workers == 1 else several_processes
            async with announcing(settings, location, taken.getsockname()):
                await run(settings, taken, ending)


def heed_signals(ending: Ending) -> None:
    """SIGTERM or Ctrl-C shut down gracefully; a second Ctrl-C aborts requests in flight."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, ending.ask, Haste.STOP)
    loop.add_signal_handler(
        signal.SIGINT, lambda: ending.ask(Haste.NOW if ending.is_asked(Haste.STOP) else Haste.STOP)
    )
    heed_hang_up(ending, lambda: None)


def heed_hang_up(ending: Ending, renew: Callable[[], None]) -> None:
    """Call `renew` on SIGHUP, or shut down if the signal means that the terminal was closed."""
    had_terminal = os.isatty(0)

    def hang_up() -> None:
        if had_terminal and not os.isatty(0):
            ending.ask(Haste.STOP)
        else:
            renew()

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, hang_up)


async def one_process(settings: Settings, taken: socket.socket, ending: Ending) -> None:
    await answer(settings, taken, ending, lambda: None)


async def answer(settings: Settings, taken: socket.socket, ending: Ending, begun: Callable[[], None]) -> None:
    """Serve the socket with an application and a store of its own, until shutdown is requested.

    `begun` is called when the process accepts requests, even if it can only respond with 503 yet.
    """
    async with AsyncExitStack() as stack:
        app = await ending.unless_asked(ready_app(settings, stack))
        if app is None:
            return
        runner = Runner(app, settings, keepalive_timeout=KEEPALIVE, shutdown_timeout=GIVING_UP)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        gc.set_threshold(*COLLECTING)
        sys.setswitchinterval(TAKING_TURNS)
        assert runner.server
        door = Door(taken, runner.server)
        door.open()
        begun()
        await ending.wait(Haste.RETIRE)
        await app[TRAFFIC].end(runner.server, door, ending)


async def ready_app(settings: Settings, stack: AsyncExitStack) -> web.Application:
    """The application and its store, which is closed with the stack."""
    uri, site = settings.mongodb_uri, site_of(settings)
    store = await stack.enter_async_context(open_store(uri, settings.database, site, patient=True))
    await stack.enter_async_context(maintaining(store, stranger(settings.access)))
    return create_app(settings, store)


async def several_processes(settings: Settings, taken: socket.socket, ending: Ending) -> None:
    """Run the workers under gunicorn, which replaces dead ones and restarts all of them on SIGHUP."""
    # The manager inherits this, so that an early SIGHUP does not kill it before it has installed a handler.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    manager = await start_manager(settings, taken)
    # The workers hold the socket now: once they close it, new connections are refused.
    taken.close()
    heed_hang_up(ending, lambda: tell(manager, signal.SIGHUP))
    passing_on = asyncio.create_task(pass_on(ending, manager))
    status = await manager.wait()
    passing_on.cancel()
    if status and not ending.is_asked(Haste.STOP):
        raise WorkersEnded(f"the workers ended with status {status}")


async def start_manager(settings: Settings, taken: socket.socket) -> Process:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    # Import the same modules as this process, whatever the working directory contains.
    path = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH", "")]))
    kept |= {"PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
    return await asyncio.create_subprocess_exec(
        *guarded(sys.executable, "-m", "service.workers", str(taken.fileno())),
        env=kept | settings.variables(),
        pass_fds=[taken.fileno()],
        start_new_session=True,
    )


async def pass_on(ending: Ending, manager: Process) -> None:
    for haste, number in ((Haste.STOP, signal.SIGTERM), (Haste.NOW, signal.SIGINT)):
        await ending.wait(haste)
        tell(manager, number)


def tell(manager: Process, number: signal.Signals) -> None:
    if manager.returncode is None:
        manager.send_signal(number)
