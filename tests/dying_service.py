"""A service that kills itself while it creates a record with an idempotency key.

`python -m tests.dying_service MOMENT serve`: it dies when MongoDB has done this command of the transaction,
`insert` or `commitTransaction`.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from pymongo import monitoring

from service.__main__ import main
from service.store.records.idempotency import IDEMPOTENCY_KEYS


class Killer(monitoring.CommandListener):
    """Kills this process when a transaction that stores a key has come to a command."""

    def __init__(self, moment: str) -> None:
        self._moment = moment
        self._sessions: set[bytes] = set()
        self._fatal: set[int] = set()

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        command: Any = event.command
        session = bytes(command["lsid"]["id"]) if "lsid" in command else b""
        if command.get("insert") == IDEMPOTENCY_KEYS:
            self._sessions.add(session)
        if event.command_name == self._moment and session in self._sessions:
            self._fatal.add(event.request_id)

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        if event.request_id in self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        self._fatal.discard(event.request_id)


if __name__ == "__main__":
    monitoring.register(Killer(sys.argv.pop(1)))
    main()
