"""Become another program, after asking the kernel to stop it when the service dies.

Run by its path as a program of its own, because code between fork and exec is unsafe beside threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def guarded(*command: str) -> list[str]:
    """The command, to be run so that it does not outlive this process."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def main(service_pid: int, command: list[str]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        # A service that died before the request was made sends no signal any more.
        if os.getppid() != service_pid:
            sys.exit("the service ended before this program started")
    os.execv(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
