"""Measures `kalends import`."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from typing import Any

from benchmarks.asks import Create
from benchmarks.dialects.kalends import Kalends
from benchmarks.facts import Facts
from benchmarks.running import ROOT
from benchmarks.workloads.workload import Workload


def imported(python: str, uri: str, database: str, load: Workload, facts: Facts) -> dict[str, Any]:
    """Imports the events of a workload once; the time includes the start of the process."""
    dialect = Kalends(facts)
    lines = [json.dumps(dialect.body(ask)) for ask in load.asks if isinstance(ask, Create)]
    environment = os.environ | {"KALENDS_MONGODB_URI": uri, "KALENDS_DATABASE": database}
    with tempfile.NamedTemporaryFile("w", suffix=".ndjson") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        begun = time.monotonic()
        command = [python, "-m", "service", "import", file.name]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        took = time.monotonic() - begun
    errors = [] if done.returncode == 0 else [done.stderr[-300:]]
    unknown = dict.fromkeys(("p50", "p99", "max", "size", "commands", "memory"))
    rate = len(lines) / took
    return unknown | {"rate": rate, "rates": [rate], "errors": errors, "connections": 1}
