"""A service in a process of its own, for tests that run without an event loop."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.checker import DEADLINE
from tests.test_faults import Running, spawned


@contextmanager
def serving(data_dir: Path, **settings: str) -> Iterator[Running]:
    """A service on a free port that answers: `with serving(tmp_path / "data", AUTH="token")`."""
    output, errors = data_dir.with_suffix(".out"), data_dir.with_suffix(".err")
    with spawned(data_dir, output, errors, **settings) as process:
        give_up = time.monotonic() + DEADLINE
        while "Stop with Ctrl-C" not in (said := output.read_text()):
            assert process.poll() is None, errors.read_text()
            assert time.monotonic() < give_up, said
            time.sleep(0.1)
        (line,) = (line for line in said.splitlines() if line.split()[:1] == ["API"])
        yield Running(process, line.split()[1].rstrip("/"), errors, data_dir)
