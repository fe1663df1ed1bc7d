"""Several processes on one port, kept by gunicorn; run by `serve` as a program of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from mmap import mmap
from typing import Any

import uvloop
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.glogging import Logger
from gunicorn.workers import base

from config import Settings, read_settings
from config.logs import configure
from service.ending import Ending, Haste
from service.serve import answer
from service.traffic import GRACE

ASKS = {signal.SIGTERM: Haste.RETIRE, signal.SIGINT: Haste.STOP, signal.SIGQUIT: Haste.NOW}
"""What the manager's signals mean to a worker."""
BEAT = 1.0
LONGEST_END = int(GRACE) + 5
"""Seconds after which a worker that should have ended is killed."""


class Worker(base.Worker):  # type: ignore[misc]
    """Serves as a single process would, and shows the manager that it lives."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._answers = mmap(-1, 1)  # made before the fork, so that the manager sees it too

    @property
    def answers(self) -> bool:
        return self._answers[0] == 1

    def init_signals(self) -> None:
        for number in self.SIGNALS:
            signal.signal(number, signal.SIG_DFL)

    def run(self) -> None:
        self.booted = False  # gunicorn says so too early: until it answers, an end is a failure to start
        uvloop.run(self._serve(self.wsgi))

    async def _serve(self, settings: Settings) -> None:
        configure(settings.log_level, settings.log_format)
        ending = Ending()
        for number, haste in ASKS.items():
            asyncio.get_running_loop().add_signal_handler(number, ending.ask, haste)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ASKS)
        beating = asyncio.create_task(self._beat(ending))
        await answer(settings, self.sockets[0].sock, ending, self._begin)
        beating.cancel()
        signal.pthread_sigmask(signal.SIG_BLOCK, ASKS)  # there is nothing left to ask for
        signal.set_wakeup_fd(-1)  # a thread of the driver may still be sent one, and the loop is closed soon

    def _begin(self) -> None:
        self.booted = True
        self._answers[0] = 1

    async def _beat(self, ending: Ending) -> None:
        while True:
            self.notify()
            if os.getppid() != self.ppid:
                ending.ask(Haste.STOP)
            await asyncio.sleep(BEAT)


class Manager(Arbiter):  # type: ignore[misc]
    """Gunicorn's manager, made to lose no signal and no connection."""

    def spawn_worker(self) -> Any:
        # A signal that came before the worker is able to heed it would be lost: it waits.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ASKS)
        pid = super().spawn_worker()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return pid

    def manage_workers(self) -> None:
        """Old workers retire when the new ones answer."""
        newest = sorted(self.WORKERS.values(), key=lambda worker: -worker.age)[: self.num_workers]
        if len(self.WORKERS) <= self.num_workers or all(worker.answers for worker in newest):
            super().manage_workers()

    def stop(self, graceful: bool = True) -> None:
        self.kill_workers(signal.SIGINT)
        self.cfg.set("graceful_timeout", LONGEST_END)
        super().stop(graceful)


class ManagerLog(Logger):  # type: ignore[misc]
    """Hands the manager's messages to the service's own log, so that they have its format."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True


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
            "worker_class": Worker,
            # A manager that waits for the workers it has renewed hears no signal meanwhile.
            "graceful_timeout": 0,
            "control_socket_disable": True,
            "logger_class": ManagerLog,
            "loglevel": "warning",
            "proc_name": "kalends",
        }
        for name, value in chosen.items():
            self.cfg.set(name, value)

    def load(self) -> Settings:
        return self._settings

    def run(self) -> None:
        Manager(self).run()


if __name__ == "__main__":
    chosen = read_settings(os.environ, {})
    configure(chosen.log_level, chosen.log_format)
    Workers(chosen, int(sys.argv[1])).run()
