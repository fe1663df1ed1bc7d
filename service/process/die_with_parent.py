"""Execute another program, after asking the kernel to terminate it when the service dies.

Run as a separate script, because running Python code between fork and exec is unsafe in a threaded process.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def die_with_parent(*command: str) -> list[str]:
    """A command line that runs the command so that it does not outlive this process."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def main(service_pid: int, command: list[str]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        # If the service died before the call to prctl, the kernel sends no signal.
        if os.getppid() != service_pid:
            sys.exit("the service ended before this program started")
    os.execv(command[0], command)  # noqa: S606 - the command of the service itself


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
