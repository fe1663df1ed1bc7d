"""Workers that send no heartbeats are aborted, unless their manager could not run either."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gunicorn.arbiter
import pytest

from service.process import workers
from service.process.workers import Manager

PID = 7
TIMEOUT = 30


class Clocked:
    """A manager with one worker, whose steps are a second apart unless the machine is suspended."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.heartbeat, self.aborted = 1000.0, 1000.0, False
        clock = SimpleNamespace(monotonic=lambda: self.now)
        for module in (gunicorn.arbiter, workers):
            monkeypatch.setattr(module, "time", clock)
        self.manager: Any = Manager.__new__(Manager)
        tmp = SimpleNamespace(last_update=lambda: self.heartbeat)
        self.manager.WORKERS = {PID: SimpleNamespace(tmp=tmp, aborted=False)}
        self.manager.timeout, self.manager.log = TIMEOUT, SimpleNamespace(critical=lambda *_: None)
        self.manager.kill_worker = self._kill

    def _kill(self, pid: int, number: int) -> None:
        self.aborted = True

    def run(self, seconds: int, *, hangs: bool = False) -> None:
        for _ in range(seconds):
            self.now += 1
            self.heartbeat = self.heartbeat if hangs else self.now
            self.manager.murder_workers()


@pytest.fixture
def clocked(monkeypatch: pytest.MonkeyPatch) -> Clocked:
    made = Clocked(monkeypatch)
    made.run(60)
    return made


def test_a_worker_that_hangs_is_aborted(clocked: Clocked) -> None:
    clocked.run(TIMEOUT, hangs=True)
    assert not clocked.aborted
    clocked.run(1, hangs=True)
    assert clocked.aborted


def test_a_worker_that_hangs_from_the_start_is_aborted(monkeypatch: pytest.MonkeyPatch) -> None:
    clocked = Clocked(monkeypatch)
    clocked.run(TIMEOUT + 1, hangs=True)
    assert clocked.aborted


def test_workers_are_not_aborted_because_the_machine_was_suspended(clocked: Clocked) -> None:
    for _ in range(2):
        clocked.now += 3600
        for _ in range(3):  # signals that have come meanwhile may wake up the manager before its workers run
            clocked.manager.murder_workers()
        clocked.run(2, hangs=True)
        clocked.run(2 * TIMEOUT)
    assert not clocked.aborted
    clocked.run(TIMEOUT + 1, hangs=True)
    assert clocked.aborted
