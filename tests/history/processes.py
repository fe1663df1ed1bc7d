"""Processes under test: they can be killed, paused and started again, and never outlive this process."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

# The kernel kills the program when the tests die, even if it is paused.
BOUND = "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9, 0, 0, 0); os.execv(sys.argv[1], sys.argv[1:])"


def free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number)]
        return [one.getsockname()[1] for one in sockets]


class Program:
    """A program that listens on a port of its own."""

    def __init__(
        self, name: str, port: int, log: Path, command: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        self.name, self.port, self.log = name, port, log
        self._command, self._environment = command, environment
        self._process: subprocess.Popen[bytes] | None = None
        self.kills = 0
        self.is_paused = False

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", BOUND, *self._command],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        """Kill it with SIGKILL; it may be paused."""
        self.kills += 1
        self.is_paused = False
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        self.is_paused = True
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.is_paused = False
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)
