"""Starts and stops the steady writer that runs beside a workload."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.running import ROOT

CHANGES, NEIGHBOUR = 20, 50
"""Writes per second."""
STOP_SECONDS = 60.0


@contextmanager
def writing(job: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    """Writes for as long as the context lasts; then `rate` and `errors` are known. None: writes nothing."""
    found: dict[str, Any] = {"rate": 0.0, "errors": []}
    if job is None:
        yield found
        return
    command = [sys.executable, "-m", "benchmarks.load.steady"]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdin
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        yield found
    finally:
        said, _ = process.communicate(timeout=STOP_SECONDS)
        found |= json.loads(said)
