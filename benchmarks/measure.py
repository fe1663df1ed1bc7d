"""Measures a workload in rounds, with the systems taking turns, and reports the median."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from statistics import median
from typing import Any

from benchmarks.systems import ROOT, Running
from benchmarks.workloads import Workload

COUNTED = ("query", "getmore", "insert", "update", "delete", "command")
IDLE_SECONDS = 6.0
"""Longer than the interval between two background sweeps of Kalends, so that one is included."""
DRAIN_SECONDS = 10.0
"""Maximum time in which the last responses on all connections should arrive."""
PROBE_SECONDS = 5.0
"""How long a system is probed before it is considered slow."""
Measured = dict[str, Any]


class Meter:
    """Counts the commands that reach MongoDB, minus those sent while there are no requests."""

    def __init__(self, database: Any) -> None:
        self._database = database
        self._idle = 0.0
        self._begun = (0, 0.0)

    def find_idle(self) -> None:
        self.start()
        time.sleep(IDLE_SECONDS)
        self._idle = self.stop() / IDLE_SECONDS

    def start(self) -> None:
        self._begun = (self._total(), time.monotonic())

    def stop(self) -> float:
        total, since = self._begun
        idle = self._idle * (time.monotonic() - since)
        return max(0.0, self._total() - total - idle)

    def _total(self) -> int:
        counters = self._database.command("serverStatus")["opcounters"]
        return sum(counters[name] for name in COUNTED)


def ask(system: Running, requests: list[str], connections: int, seconds: float) -> Measured:
    """Runs the load generator once."""
    job = {"port": system.port, "requests": requests, "connections": connections, "seconds": seconds}
    command = [sys.executable, "-m", "benchmarks.client"]
    run = subprocess.run(
        command, cwd=ROOT, input=json.dumps(job), stdout=subprocess.PIPE, text=True, check=True
    )
    found: Measured = json.loads(run.stdout)
    return found


def one_round(
    system: Running, requests: list[str], connections: int, seconds: float, meter: Meter
) -> Measured:
    meter.start()
    found = ask(system, requests, connections, seconds)
    found["commands"] = meter.stop() / max(1, found["requests"])
    found["memory"] = system.peak()
    found["errors"] += filter(None, [system.ended()])
    return found


def requests_of(system: Running, load: Workload) -> list[str] | None:
    """The requests of a workload for one system; None if it does not support all of them."""
    if system.system.lists_only and not load.lists:
        return None
    found = [system.dialect.request(one) for one in load.asks]
    return None if None in found else [one.decode("latin-1") for one in found if one]


def bearable(system: Running, request: str, connections: int) -> int:
    """The number of connections that the system can serve in reasonable time: fewer only if a response takes
    seconds. Probes repeatedly, since the first response of each process may take longer than all others."""
    begun, took = time.monotonic(), answering(system, request)
    while took * connections > DRAIN_SECONDS and time.monotonic() - begun < PROBE_SECONDS:
        took = min(took, answering(system, request))
    return max(1, min(connections, int(DRAIN_SECONDS / took)))


def answering(system: Running, request: str) -> float:
    """Seconds until the response to one request is complete."""
    since = time.monotonic()
    system.answer(request.encode("latin-1"))
    return time.monotonic() - since


def measure(
    systems: list[Running], load: Workload, connections: int, seconds: float, rounds: int, meter: Meter
) -> dict[str, Measured]:
    """Warms up every system, then runs the rounds."""
    able = [(one, requests) for one in systems if (requests := requests_of(one, load))]
    many = {one.system.key: bearable(one, requests[0], connections) for one, requests in able}
    for system, requests in able:
        ask(system, turned(requests, 0.5 / rounds), many[system.system.key], max(0.5, seconds / 3))
    runs: dict[str, list[Measured]] = {key: [] for key in many}
    for at in range(rounds):
        for system, requests in able:
            key = system.system.key
            runs[key].append(one_round(system, turned(requests, at / rounds), many[key], seconds, meter))
    return {key: middle(found) | {"connections": many[key]} for key, found in runs.items()}


def turned(requests: list[str], part: float) -> list[str]:
    """Rotates the requests, so that each round starts with different events and creates different ones."""
    at = int(part * len(requests))
    return requests[at:] + requests[:at]


def middle(runs: list[Measured]) -> Measured:
    names = ("rate", "p50", "p99", "size", "commands", "memory")
    found: Measured = {name: median(run[name] or 0 for run in runs) for name in names}
    found["rates"] = [run["rate"] for run in runs]
    found["errors"] = [error for run in runs for error in run["errors"]]
    return found
