"""Starts, queries, monitors and stops a system under test."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from benchmarks.facts import Facts
from benchmarks.systems import System

ROOT = Path(__file__).parent.parent
START_SECONDS, ANSWER_SECONDS = 120.0, 600.0


class Running:
    """A running system."""

    def __init__(self, system: System, process: subprocess.Popen[bytes], port: int, facts: Facts) -> None:
        self.system = system
        self.port = port
        self.dialect = system.speak(facts)
        self._process = process

    def answer(self, request: bytes) -> bytes:
        """Sends one request and returns the response body; raises an error unless the status is 2xx."""
        head, _, body = request.partition(b"\r\n\r\n")
        first, *rest = head.decode().split("\r\n")
        method, path, _ = first.split(" ")
        headers = dict(line.split(": ", 1) for line in rest)
        connection = HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_SECONDS)
        connection.request(method, path, body or None, headers)
        answer = connection.getresponse()
        said = answer.read()
        connection.close()
        if not 200 <= answer.status < 300:
            raise RuntimeError(
                f"{self.system.title} returned {answer.status} for {method} {path}: {said[:500]!r}"
            )
        return said

    def wait(self) -> None:
        """Waits until the system responds with any status but 503."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            with suppress(OSError, HTTPException):
                connection = HTTPConnection("127.0.0.1", self.port, timeout=5)
                connection.request("GET", "/health/ready")
                if connection.getresponse().status != 503:
                    return
            time.sleep(0.1)
        raise RuntimeError(f"{self.system.title} did not start")

    def ended(self) -> str | None:
        """An error message if the process has exited, else None."""
        status = self._process.poll()
        return None if status is None else f"{self.system.title} exited with status {status}"

    def peak(self) -> int:
        """The sum of the peak memory of the process and each of its descendants, in bytes."""
        pids, found = [self._process.pid], 0
        for pid in pids:
            with suppress(OSError):
                pids += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
                found += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
        return found

    def stop(self) -> None:
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


@contextmanager
def running(system: System, python: str, uri: str, database: str, facts: Facts) -> Iterator[Running]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    command = [part.format(python=python, port=port) for part in system.command]
    environment = os.environ | {
        "KALENDS_MONGODB_URI": uri,
        "KALENDS_DATABASE": database,
        "KALENDS_PORT": str(port),
        "KALENDS_AUTH": "token" if facts.public else "open",
        "KALENDS_ACCESS_LOG": "off",
        "BENCH_PORT": str(port),
        "BENCH_URI": uri,
        "BENCH_DATABASE": database,
        "BENCH_STORED": str(facts.stored),
        **dict(system.variables),
    }
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        found = Running(system, process, port, facts)
        found.wait()
        yield found
    finally:
        Running(system, process, port, facts).stop()
