"""The process under test: the service, or a command, that kills itself between two database calls."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from ctypes import c_int
from multiprocessing.synchronize import Event
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from pymongo import monitoring

from service.__main__ import main
from service.changes import log as change_log
from service.imports.ndjson import lines
from service.migrations import lease
from service.mongo import abandoned_transactions
from service.process.maintenance import Maintenance
from service.store import Store

PR_SET_PDEATHSIG = 1
BEFORE, AFTER = 0, 1
"""Before the command is sent; after it is done, but before the caller has seen the reply."""
ABOUT_CONNECTIONS = {"hello", "saslStart", "saslContinue", "ping", "endSessions", "buildInfo"}
"""Commands that are never counted."""
READS = {"find", "getMore", "aggregate", "count", "listCollections", "listIndexes", "killCursors"}
"""Commands after which the database is as it was before them."""


Completed = monitoring.CommandSucceededEvent | monitoring.CommandFailedEvent


class Point(NamedTuple):
    """Where to die: before or after which command, counted from the moment of arming."""

    moment: int
    reads: bool
    """Whether commands that only read are counted, too."""
    number: int = 0
    """The number of the command; 0: do not die."""
    waits: bool = False
    """Whether commands are counted only when the store has started."""


class Trigger(NamedTuple):
    """Shared with the test: the point, how many commands are left until then, and how many commands are not
    answered yet."""

    moment: c_int
    reads: c_int
    left: c_int
    waits: c_int
    running: c_int

    def arm(self, point: Point) -> None:
        self.moment.value, self.reads.value, self.waits.value = point.moment, point.reads, point.waits
        self.left.value = point.number

    def counts(self, command: str) -> bool:
        """Whether the trigger is armed, and this command brings it nearer."""
        is_other = command in ABOUT_CONNECTIONS or (command in READS and not self.reads.value)
        return self.left.value > 0 and not self.waits.value and not is_other


class Killer(monitoring.CommandListener):
    """Counts the commands from the moment it is armed, and kills the process at the one that is due."""

    def __init__(self, trigger: Trigger, log: Path) -> None:
        self._trigger = trigger
        self._log = log
        self._running: dict[int, str] = {}
        self._lock = Lock()

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if self._trigger.left.value:
            with self._lock:
                self._running[event.request_id] = line_of(event)
                self._reach(BEFORE, event)

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        self._completed(event)

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        self._completed(event)

    def _completed(self, event: Completed) -> None:
        if event.request_id in self._running:
            with self._lock:
                self._reach(AFTER, event)
                del self._running[event.request_id]
                self._trigger.running.value = len(self._running)

    def _reach(self, moment: int, event: Any) -> None:
        self._trigger.running.value = len(self._running)
        if self._trigger.moment.value == moment and self._trigger.counts(event.command_name):
            self._trigger.left.value -= 1
            if not self._trigger.left.value:
                self._log.write_text(self._running[event.request_id])
                os.kill(os.getpid(), signal.SIGKILL)


def line_of(event: monitoring.CommandStartedEvent) -> str:
    """The name of a command, and the collection that it is about."""
    name, command = event.command_name, event.command
    about = command["collection"] if name == "getMore" else command.get(name)
    return f"{name} {about}" if isinstance(about, str) else name


def run(
    words: Sequence[str],
    settings: Mapping[str, str],
    output: Path,
    log: Path,
    trigger: Trigger,
    maintained: Event,
) -> None:
    """Run `kalends` with these words on its command line, in a process that has just been forked."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    for number in (1, 2):
        os.dup2(os.open(output, os.O_WRONLY | os.O_APPEND | os.O_CREAT), number)
    os.environ.update({f"KALENDS_{name}": value for name, value in settings.items()})
    shorten()
    monitoring.register(Killer(trigger, log))
    report(trigger, maintained)
    sys.argv = ["kalends", *words]
    main()


def shorten() -> None:
    """Pauses that would only make the test longer, and batches that a short file has several of."""
    change_log.PAUSE_SECONDS = 0.01
    sys.modules[Maintenance.__module__].MAINTENANCE_SECONDS = 0.3  # type: ignore[attr-defined]
    abandoned_transactions.ABANDONED_AFTER_SECONDS = 0.0
    lease.LEASE_SECONDS, lease.WAIT_SECONDS = 1, 0.05
    lines.MAX_BATCH_LINES = 10


def report(trigger: Trigger, maintained: Event) -> None:
    """Tell the test when the store has started, and when background maintenance has succeeded."""
    start, maintain = Store.start, Store.maintain

    async def starting(self: Store) -> None:
        await start(self)
        trigger.waits.value = False

    async def maintaining(self: Store) -> None:
        await maintain(self)
        abandoned_transactions.ABANDONED_AFTER_SECONDS = 3.0  # no more of those that died before the start
        maintained.set()

    Store.start, Store.maintain = starting, maintaining  # type: ignore[method-assign]
