"""The systems under test, and the command that starts each."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.dialects import Dialect
from benchmarks.dialects.kalends import Kalends
from benchmarks.dialects.limits import Constant, MotorBytes
from benchmarks.dialects.peers import Beanie, Eve, Fastify
from benchmarks.facts import Facts

FOLDER = Path(__file__).parent
NODE_MODULES = FOLDER.parent / ".venv-bench" / "fastify" / "node_modules"
OURS, THEIRS = "{python}", sys.executable
SERVE = [OURS, "-m", "service", "serve"]
CONSTANT = [OURS, "-m", "benchmarks.limits.constant"]
MOTOR = [OURS, "-m", "benchmarks.limits.motor_bytes"]
EVE = [THEIRS, "-m", "gunicorn", "--workers=1", "--no-control-socket", "--threads=4", "--log-level=warning"]
EVE += ["--bind=127.0.0.1:{port}", "benchmarks.peers.eve_app:app"]
BEANIE = [THEIRS, "-m", "uvicorn", "--port={port}", "--log-level=warning", "--no-access-log"]
BEANIE += ["benchmarks.peers.beanie_app:app"]
FASTIFY = ["node", str(FOLDER / "peers" / "fastify" / "app.js")]
NO_TOTALS = {"BENCH_TOTALS": "0"}
IN_NODE = {"NODE_PATH": str(NODE_MODULES), "NODE_ENV": "production"}
NO_NODE = "Fastify is not measured: it needs node and npm."


@dataclass(frozen=True)
class System:
    """A system under test; `lists_only` means that it differs from another one only in lists."""

    key: str
    title: str
    command: tuple[str, ...]
    speak: Callable[[Facts], Dialect]
    variables: tuple[tuple[str, str], ...] = ()
    lists_only: bool = False


def system(
    key: str, title: str, command: list[str], speak: Callable[[Facts], Dialect], **more: str
) -> System:
    return System(key, title, tuple(command), speak, tuple(more.items()), more.get("BENCH_TOTALS") == "0")


SYSTEMS = [
    system("kalends", "Kalends", SERVE, Kalends),
    system("constant", "Constant bytes (aiohttp)", CONSTANT, Constant),
    system("motor", "Ready-made bodies (aiohttp, Motor)", MOTOR, MotorBytes),
    system("eve", "Eve", EVE, Eve),
    system("beanie", "FastAPI + Beanie", BEANIE, Beanie),
    system("beanie_fast", "FastAPI + Beanie, totals off", BEANIE, Beanie, **NO_TOTALS),
    system("fastify", "Fastify + MongoDB driver", FASTIFY, Fastify, **IN_NODE),
]
TWO = system("kalends2", "Kalends, two processes", SERVE, Kalends, KALENDS_WORKERS="2")


def installed(system: System) -> bool:
    return system.command[0] != "node" or (shutil.which("node") is not None and NODE_MODULES.exists())
