"""Serving: a database, a socket, the application, and a clean end."""

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
from service.store import open_store, sweeping
from service.store.client import connect
from service.traffic import TRAFFIC

KEEPALIVE = 20
READING_MS = 30_000
"""Milliseconds that an answer may wait for a client that does not read it."""
BACKLOG = 1024
GIVING_UP = 0.5
"""Seconds that a request gets to notice that it is given up."""
COLLECTING = (5000, 20, 100)
"""A request leaves little behind that has to be looked for: Python looks less often than it would."""
TAKING_TURNS = 0.0003
"""Seconds of computing after which a thread that talks to MongoDB gets its turn. With Python's 0.005 the next
question would wait until the last answers are rendered, and then this process for MongoDB."""

SOURCE = Path(__file__).parent.parent


class WorkersEnded(Exception):
    """The workers have ended by themselves."""


def listening(settings: Settings) -> socket.socket:
    """The socket, taken before anything else starts, so that a busy port is told at once."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        taken = socket.create_server((settings.host, settings.port), family=family, backlog=BACKLOG)
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
        ending = Ending()
        heed_signals(ending)
        async with located(settings, shared=False) as location:
            settings = replace(settings, mongodb_uri=location.uri)
            connect(location.uri).close()  # an unusable URI is an error at once, in one line
            if demo:
                await fill_demo(location, site_of(settings))
            run = one_process if settings.workers == 1 else several_processes
            async with announcing(settings, location, taken.getsockname()):
                await run(settings, taken, ending)


def heed_signals(ending: Ending) -> None:
    """One signal stops; a second Ctrl-C is of somebody who does not want to wait."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, ending.ask, Haste.STOP)
    loop.add_signal_handler(
        signal.SIGINT, lambda: ending.ask(Haste.NOW if ending.is_asked(Haste.STOP) else Haste.STOP)
    )
    heed_hang_up(ending, lambda: None)


def heed_hang_up(ending: Ending, renew: Callable[[], None]) -> None:
    """SIGHUP renews what can be renewed, unless it says that the service has lost its terminal."""
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
    """Answers on the socket with an application and a store of its own, until told to end.

    `begun` is called when the first request can be answered, if only with 503.
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
    """The application with a store of its own; both end with the stack."""
    uri, site = settings.mongodb_uri, site_of(settings)
    store = await stack.enter_async_context(open_store(uri, settings.database, site, patient=True))
    await stack.enter_async_context(sweeping(store, stranger(settings.access)))
    return create_app(settings, store)


async def several_processes(settings: Settings, taken: socket.socket, ending: Ending) -> None:
    """Gunicorn keeps the workers: it replaces dead ones, and renews all of them on SIGHUP."""
    # Ignored by the manager too, which inherits that, until it can heed it.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    manager = await start_manager(settings, taken)
    # Connections are refused as soon as the workers have closed it.
    taken.close()
    heed_hang_up(ending, lambda: tell(manager, signal.SIGHUP))
    passing_on = asyncio.create_task(pass_on(ending, manager))
    status = await manager.wait()
    passing_on.cancel()
    if status and not ending.is_asked(Haste.STOP):
        raise WorkersEnded(f"the workers ended with status {status}")


async def start_manager(settings: Settings, taken: socket.socket) -> Process:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    # The same modules as in this process, whatever the working directory holds.
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
