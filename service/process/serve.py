"""`kalends serve`: open the database and the socket, run the application, shut down cleanly."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pymongo
from aiohttp import web
from pymongo.errors import PyMongoError

from config import SettingError, Settings
from config.settings import PREFIX
from handlers.pages.rendering import load_templates
from service.app import CHANGES, create_app
from service.background import background_task
from service.database import Location, connected, located
from service.demo.filling import fill_demo
from service.http.acceptor import Acceptor
from service.http.authentication import anonymous_caller
from service.http.in_flight import DRAIN_SECONDS, IN_FLIGHT
from service.http.protocol import Runner
from service.metrics.commands import CommandMetrics
from service.metrics.database_state import observe_database
from service.metrics.definitions import COMMANDS_RUNNING
from service.metrics.processes import shared_directory
from service.metrics.sampling import SAMPLER
from service.migrations import stored_form
from service.process.announcing import announcing
from service.process.die_with_parent import die_with_parent
from service.process.maintenance import maintained
from service.process.shutdown import Shutdown, Urgency
from service.site import site_of
from service.store import unstarted_store
from service.webhooks.delivery import delivering

KEEPALIVE_SECONDS = 20
CLIENT_READ_TIMEOUT_MS = 30_000
"""Milliseconds after which a client that does not read its response is disconnected."""
BACKLOG = 1024
CHECK_SECONDS = 2.0
"""Time limit of the check of the database before the start; if MongoDB cannot be reached, it is left out."""
ABORT_SECONDS = 0.5
"""Seconds that aborted requests get to clean up."""
GC_THRESHOLDS = (5000, 20, 100)
"""Garbage collection thresholds above Python's defaults: requests create few reference cycles."""
MAX_THREADS = 40
"""Threads that wait for MongoDB; the driver has 50 connections."""
THREAD_SWITCH_SECONDS = 0.0003
"""Thread switch interval in seconds, so that the MongoDB driver's threads get the GIL soon. With Python's
default of 0.005 the next query would wait until the last results are rendered, and the process would then be
idle until MongoDB responds."""

PROJECT_ROOT = Path(__file__).parents[2]


class WorkersEnded(Exception):
    """The workers have exited without being asked to."""


def create_listener(settings: Settings) -> socket.socket:
    """The listening socket, bound before anything else starts so that a port in use is reported at once."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listener = socket.create_server((settings.host, settings.port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise SettingError(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror or error}"
        ) from None
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # Accepted connections inherit it: the kernel drops clients that stop reading their response.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, CLIENT_READ_TIMEOUT_MS)
    return listener


async def serve(settings: Settings, *, demo: bool = False) -> None:
    """Serve until a signal requests shutdown."""
    site_of(settings)
    with create_listener(settings) as listener:
        settings = replace(settings, port=listener.getsockname()[1])
        shutdown = Shutdown()
        handle_signals(shutdown)
        async with AsyncExitStack() as stack:
            opening = stack.enter_async_context(located(settings, shared=False))
            location = await shutdown.unless_requested(opening)  # mongod may read a long journal first
            if location is None:
                return
            settings = replace(settings, mongodb_uri=location.uri)
            await check_database(location)
            if demo:
                await fill_demo(location, site_of(settings))
            run = serve_in_process if settings.workers == 1 else serve_with_workers
            async with announcing(settings, location, listener.getsockname()):
                await run(settings, listener, shutdown)


async def check_database(location: Location) -> None:
    """Report an invalid URI or a database of a newer version at once, in one line."""
    async with connected(location) as database:
        with suppress(PyMongoError), pymongo.timeout(CHECK_SECONDS):  # the service waits for MongoDB
            await stored_form(database)


def handle_signals(shutdown: Shutdown) -> None:
    """SIGTERM or Ctrl-C shut down gracefully; a second Ctrl-C aborts requests in flight."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, shutdown.request, Urgency.STOP)
    loop.add_signal_handler(
        signal.SIGINT,
        lambda: shutdown.request(Urgency.NOW if shutdown.is_requested(Urgency.STOP) else Urgency.STOP),
    )
    handle_hangup(shutdown, lambda: None)


def handle_hangup(shutdown: Shutdown, reload: Callable[[], None]) -> None:
    """Call `reload` on SIGHUP, or shut down if the signal means that the terminal was closed."""
    had_terminal = os.isatty(0)

    def hung_up() -> None:
        if had_terminal and not os.isatty(0):
            shutdown.request(Urgency.STOP)
        else:
            reload()

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, hung_up)


def use_threads() -> None:
    """By default asyncio has only a few threads more than there are cores: a few slow lists would take all of
    them, and every other request would wait."""
    threads = ThreadPoolExecutor(MAX_THREADS, "kalends")
    asyncio.get_running_loop().set_default_executor(threads)


async def serve_in_process(settings: Settings, listener: socket.socket, shutdown: Shutdown) -> None:
    await serve_socket(settings, listener, shutdown, lambda: None)


async def serve_socket(
    settings: Settings, listener: socket.socket, shutdown: Shutdown, on_accepting: Callable[[], None]
) -> None:
    """Serve the socket with an application and a store of its own, until shutdown is requested.

    `on_accepting` is called when the process accepts requests, even if it can only respond with 503 yet.
    """
    use_threads()
    async with AsyncExitStack() as stack:
        app = await shutdown.unless_requested(ready_app(settings, stack))
        if app is None:
            return
        runner = Runner(app, settings, keepalive_timeout=KEEPALIVE_SECONDS, shutdown_timeout=ABORT_SECONDS)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        gc.set_threshold(*GC_THRESHOLDS)
        gc.freeze()  # what exists now stays: collections need not look at it, and pause requests for less
        sys.setswitchinterval(THREAD_SWITCH_SECONDS)
        assert runner.server
        acceptor = Acceptor(listener, runner.server)
        acceptor.open()
        on_accepting()
        await asyncio.to_thread(load_templates)
        await shutdown.wait(Urgency.RETIRE)
        await app[IN_FLIGHT].drain(runner.server, acceptor, shutdown)


async def ready_app(settings: Settings, stack: AsyncExitStack) -> web.Application:
    """The application and its store, which is closed with the stack."""
    uri, site, commands = settings.mongodb_uri, site_of(settings), CommandMetrics(settings.slow_ms)
    store = await stack.enter_async_context(unstarted_store(uri, settings.database, site, [commands]))
    await stack.enter_async_context(maintained(store, anonymous_caller(settings.auth_mode)))
    app = create_app(settings, store)
    app[SAMPLER].watch_gauge(COMMANDS_RUNNING, lambda: commands.running)
    await stack.enter_async_context(background_task(app[SAMPLER].run()))
    await stack.enter_async_context(background_task(observe_database(store)))
    await stack.enter_async_context(delivering(store, app[CHANGES], settings))
    return app


async def serve_with_workers(settings: Settings, listener: socket.socket, shutdown: Shutdown) -> None:
    """Run the workers under gunicorn, which replaces dead ones and restarts all of them on SIGHUP."""
    # The manager inherits this, so that an early SIGHUP does not kill it before it has installed a handler.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with shared_directory() as metrics:
        await run_manager(settings, listener, shutdown, metrics)


async def run_manager(
    settings: Settings, listener: socket.socket, shutdown: Shutdown, variables: Mapping[str, str]
) -> None:
    reader, writer = os.pipe()
    manager = await start_manager(settings, listener, writer, variables)
    # The workers hold the socket now: once they close it, new connections are refused.
    listener.close()
    os.close(writer)
    handle_hangup(shutdown, lambda: send_signal(manager, signal.SIGHUP))
    forwarding = asyncio.create_task(forward_shutdown(shutdown, manager))
    status = await manager.wait()
    forwarding.cancel()
    await wait_for_workers(reader)
    if status and not shutdown.is_requested(Urgency.STOP):
        raise WorkersEnded(f"the workers ended with status {status}")


async def wait_for_workers(reader: int) -> None:
    """Wait until no process holds the other end of the pipe. Workers whose manager was killed end by
    themselves, and need MongoDB and the directory for metrics until then."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(reader, ended.set)
    with suppress(TimeoutError):  # workers that still run are left to themselves
        await asyncio.wait_for(ended.wait(), DRAIN_SECONDS)
    loop.remove_reader(reader)
    os.close(reader)


async def start_manager(
    settings: Settings, listener: socket.socket, held: int, variables: Mapping[str, str]
) -> Process:
    """Start the manager; it and its workers keep the descriptor `held` open until they end."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    # Import the same modules as this process, whatever the working directory contains.
    path = os.pathsep.join(filter(None, [str(PROJECT_ROOT), os.environ.get("PYTHONPATH", "")]))
    environment |= {"PYTHONPATH": path, "PYTHONSAFEPATH": "1", **variables}
    return await asyncio.create_subprocess_exec(
        *die_with_parent(sys.executable, "-m", "service.process.workers", str(listener.fileno())),
        env=environment | settings.variables(),
        pass_fds=[listener.fileno(), held],
        start_new_session=True,
    )


async def forward_shutdown(shutdown: Shutdown, manager: Process) -> None:
    for urgency, number in ((Urgency.STOP, signal.SIGTERM), (Urgency.NOW, signal.SIGINT)):
        await shutdown.wait(urgency)
        send_signal(manager, number)


def send_signal(manager: Process, number: signal.Signals) -> None:
    if manager.returncode is None:
        manager.send_signal(number)
