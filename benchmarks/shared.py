"""Starts the shared database as a child process, with a progress bar while it loads."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pymongo import MongoClient
from tqdm import tqdm

from benchmarks.facts import Facts
from benchmarks.running import ROOT

STOP_SECONDS = 600.0
FORM = 2
"""Version of the loaded data: after a change of its form, it is loaded again."""


@dataclass(frozen=True)
class Shared:
    """Connection to the shared database, and facts about its data."""

    uri: str
    name: str
    database: Any
    facts: Facts


@contextmanager
def shared_database(python: str, number: int, public: bool) -> Iterator[Shared]:
    directory = ROOT / "benchmarks" / ".data" / f"{number}-{FORM}"
    directory.parent.mkdir(exist_ok=True)
    command = [python, "-m", "benchmarks.database", str(directory), str(number)]
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        said = loaded(process, number)
        client: MongoClient[dict[str, Any]] = MongoClient(said["uri"])
        with client:
            name = said["database"]
            facts = Facts(number=number, public=public, **said["facts"])
            yield Shared(said["uri"], name, client[name], facts)
    finally:
        assert process.stdin
        process.stdin.close()
        process.wait(STOP_SECONDS)


def loaded(process: subprocess.Popen[str], number: int) -> dict[str, Any]:
    """Waits until the child has loaded everything, and returns its final report."""
    assert process.stdout
    bar = None
    for line in process.stdout:
        said: dict[str, Any] = json.loads(line)
        if "uri" in said:
            if bar:
                bar.close()
            return said
        bar = bar or tqdm(total=number, desc="Loading events", unit=" events", unit_scale=True)
        bar.update(said["loaded"] - bar.n)
        if bar.n == number:
            bar.set_description("Building indexes")
    raise RuntimeError("the database did not start")
