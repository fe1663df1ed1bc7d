"""Several worker processes on one port, managed by gunicorn; `serve` runs this as a separate program.

This relies on undocumented parts of gunicorn: `Arbiter.WORKERS`, `num_workers`, `spawn_worker`,
`manage_workers`, `murder_workers` and `kill_workers`; `Worker.booted`, `SIGNALS` and `init_signals`; and
`Logger.setup`. pyproject.toml therefore pins the release series.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from math import inf
from mmap import mmap
from typing import Any

import uvloop
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.glogging import Logger
from gunicorn.workers import base

from config import Settings, read_settings
from config.logs import configure
from service.http.in_flight import DRAIN_SECONDS
from service.metrics.processes import forget_gauges, remove_directory
from service.process.serve import serve_socket
from service.process.shutdown import Shutdown, Urgency

SIGNAL_URGENCY = {signal.SIGTERM: Urgency.RETIRE, signal.SIGINT: Urgency.STOP, signal.SIGQUIT: Urgency.NOW}
"""What the manager's signals ask of a worker."""
HEARTBEAT_SECONDS = 1.0
KILL_AFTER_SECONDS = int(DRAIN_SECONDS) + 5
"""Seconds after which a worker that has not shut down is killed."""
SUSPENDED_SECONDS = 5.0
"""The manager looks after its workers every second: after a longer pause, the machine was suspended."""


class Worker(base.Worker):  # type: ignore[misc]
    """Serves like a single process, and sends heartbeats to the manager."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._accepting = mmap(-1, 1)  # created before the fork, so that it is shared with the manager

    @property
    def is_accepting(self) -> bool:
        return self._accepting[0] == 1

    def init_signals(self) -> None:
        for number in self.SIGNALS:
            signal.signal(number, signal.SIG_DFL)

    def run(self) -> None:
        self.booted = False  # gunicorn sets it too early: an exit before serving is a failure to start
        uvloop.run(self._serve(self.wsgi))

    async def _serve(self, settings: Settings) -> None:
        configure(settings.log_level, settings.log_format)
        shutdown = Shutdown()
        for number, urgency in SIGNAL_URGENCY.items():
            asyncio.get_running_loop().add_signal_handler(number, shutdown.request, urgency)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNAL_URGENCY)
        heartbeats = asyncio.create_task(self._send_heartbeats(shutdown))
        await serve_socket(settings, self.sockets[0].sock, shutdown, self._report_accepting)
        heartbeats.cancel()
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNAL_URGENCY)  # the worker is already shutting down
        signal.set_wakeup_fd(-1)  # a driver thread may still receive a signal after the loop is closed

    def _report_accepting(self) -> None:
        self.booted = True
        self._accepting[0] = 1

    async def _send_heartbeats(self, shutdown: Shutdown) -> None:
        while True:
            self.notify()
            if os.getppid() != self.ppid:
                shutdown.request(Urgency.STOP)
            await asyncio.sleep(HEARTBEAT_SECONDS)


class Manager(Arbiter):  # type: ignore[misc]
    """Gunicorn's arbiter, changed so that it loses no signals and no connections."""

    _looked_at, _resumed_at = inf, -inf

    def spawn_worker(self) -> Any:
        # A signal that arrives before the worker has installed its handlers would be lost: keep it pending.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNAL_URGENCY)
        pid = super().spawn_worker()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return pid

    def manage_workers(self) -> None:
        """Retire old workers only once the new ones accept requests."""
        newest = sorted(self.WORKERS.values(), key=lambda worker: -worker.age)[: self.num_workers]
        if len(self.WORKERS) <= self.num_workers or all(worker.is_accepting for worker in newest):
            super().manage_workers()

    def murder_workers(self) -> None:
        """Abort workers without heartbeats; after a suspension they get the time for one again."""
        now = time.monotonic()
        if now - self._looked_at > SUSPENDED_SECONDS:
            self._resumed_at = now
        self._looked_at = now
        if now - self._resumed_at > self.timeout:
            super().murder_workers()

    def stop(self, graceful: bool = True) -> None:
        self.kill_workers(signal.SIGINT)
        self.cfg.set("graceful_timeout", KILL_AFTER_SECONDS)
        super().stop(graceful)


class ManagerLog(Logger):  # type: ignore[misc]
    """Passes gunicorn's messages to the service's log, so that they have its format."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True


class Workers(BaseApplication):  # type: ignore[misc]
    """Gunicorn, configured from the settings alone."""

    def __init__(self, settings: Settings, descriptor: int) -> None:
        self._settings = settings
        self._descriptor = descriptor
        super().__init__()

    def load_config(self) -> None:
        options: dict[str, Any] = {
            "bind": f"fd://{self._descriptor}",
            "workers": self._settings.workers,
            "worker_class": Worker,
            # While the manager waits for replaced workers to exit, it handles no signals.
            "graceful_timeout": 0,
            "control_socket_disable": True,
            "logger_class": ManagerLog,
            "loglevel": "warning",
            "proc_name": "kalends",
            "child_exit": lambda manager, worker: forget_gauges(worker.pid),
            "on_exit": lambda manager: remove_directory(),
        }
        for name, value in options.items():
            self.cfg.set(name, value)

    def load(self) -> Settings:
        return self._settings

    def run(self) -> None:
        Manager(self).run()


if __name__ == "__main__":
    settings = read_settings(os.environ, {})
    configure(settings.log_level, settings.log_format)
    forget_gauges(os.getpid())  # the manager serves nothing, but has imported the metrics
    Workers(settings, int(sys.argv[1])).run()
