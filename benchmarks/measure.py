"""Measures a workload in rounds, with the systems taking turns, and reports the median."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.asks import Ask
from benchmarks.meter import Meter
from benchmarks.running import ROOT, Running
from benchmarks.workloads.workload import Workload

DRAIN_SECONDS = 10.0
"""Maximum time in which the last responses on all connections should arrive."""
PROBE_SECONDS = 5.0
"""How long a system is probed before it is considered slow."""
LONGEST_SECONDS = 120.0
"""Maximum time for requests that are all sent, however long they take."""
WHOLE_ROUND_SECONDS = 30.0
"""Maximum time of a round that sends all of its requests."""
Measured = dict[str, Any]
Requests = list[str]


@dataclass(frozen=True)
class Pace:
    """How a workload is measured."""

    connections: int
    seconds: float
    rounds: int


@dataclass(frozen=True)
class Part:
    """One system with its requests for a workload."""

    system: Running
    warm: Requests
    rounds: list[Requests]
    connections: int


def measure(systems: list[Running], load: Workload, pace: Pace, meter: Meter) -> dict[str, Measured]:
    """Warms up every system, then runs the rounds."""
    parts = [part for one in systems if (part := part_of(one, load, pace))]
    if not load.cold:
        for part in parts:
            warm_up(part, load, pace)
    runs: dict[str, list[Measured]] = {part.system.system.key: [] for part in parts}
    for at in range(1 if load.cold else pace.rounds):
        for part in parts:
            seconds = seconds_of_round(load, pace)
            found = one_round(part, part.rounds[at], seconds, meter, once=load.once)
            runs[part.system.system.key].append(found)
    used = {part.system.system.key: part.connections for part in parts}
    return {key: middle(found) | {"connections": used[key]} for key, found in runs.items()}


def seconds_of_round(load: Workload, pace: Pace) -> float:
    if load.cold:
        return LONGEST_SECONDS
    return max(WHOLE_ROUND_SECONDS, pace.seconds) if load.whole else pace.seconds


def part_of(system: Running, load: Workload, pace: Pace) -> Part | None:
    """None if the system does not support all requests."""
    if system.system.lists_only and not load.lists:
        return None
    warm, requests = requests_of(system, load.warm), requests_of(system, load.asks)
    if warm is None or requests is None:
        return None
    rounds = 1 if load.cold else pace.rounds
    cut = divided if load.once else turned
    parts = [cut(requests, at, rounds) for at in range(rounds)]
    if load.cold:
        return Part(system, [], parts, pace.connections)
    warm = warm or turned(requests, 1, 2 * rounds)
    return Part(system, warm, parts, bearable(system, warm[0], pace.connections))


def requests_of(system: Running, asks: list[Ask]) -> Requests | None:
    found = [system.dialect.request(one) for one in asks]
    return None if None in found else [one.decode("latin-1") for one in found if one]


def turned(requests: Requests, at: int, rounds: int) -> Requests:
    """Rotates the requests, so that each round starts with different events and creates different ones."""
    begin = at * len(requests) // rounds
    return requests[begin:] + requests[:begin]


def divided(requests: Requests, at: int, rounds: int) -> Requests:
    """One of several parts, so that no two rounds have a request in common."""
    size = len(requests) // rounds
    return requests[at * size : (at + 1) * size]


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


def warm_up(part: Part, load: Workload, pace: Pace) -> None:
    """Kalends gets all requests meant for it, so that it has met each filter; the peers keep nothing."""
    whole = load.once and part.system.system.key == "kalends"
    seconds = LONGEST_SECONDS if whole else max(0.5, pace.seconds / 3)
    ask(part, part.warm, seconds, once=load.once)


def ask(part: Part, requests: Requests, seconds: float, *, once: bool) -> Measured:
    """Runs the load generator once."""
    job = {"port": part.system.port, "requests": requests, "once": once}
    job |= {"connections": part.connections, "seconds": seconds}
    command = [sys.executable, "-m", "benchmarks.load.client"]
    run = subprocess.run(
        command, cwd=ROOT, input=json.dumps(job), stdout=subprocess.PIPE, text=True, check=True
    )
    found: Measured = json.loads(run.stdout)
    return found


def one_round(part: Part, requests: Requests, seconds: float, meter: Meter, *, once: bool) -> Measured:
    meter.start()
    found = ask(part, requests, seconds, once=once)
    found["commands"] = meter.stop() / max(1, found["requests"])
    found["memory"] = part.system.peak()
    found["errors"] += filter(None, [part.system.ended()])
    return found


def middle(runs: list[Measured]) -> Measured:
    names = ("rate", "p50", "p99", "size", "commands", "memory")
    found: Measured = {name: median(run[name] or 0 for run in runs) for name in names}
    found["max"] = max(run["max"] or 0 for run in runs)
    found["rates"] = [run["rate"] for run in runs]
    found["errors"] = [error for run in runs for error in run["errors"]]
    return found
