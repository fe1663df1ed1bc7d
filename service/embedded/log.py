"""The log of mongod: bounded in size, and searched for the reason of a failed start."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

MAX_LOG_BYTES = 10_000_000
SEARCHED_LOG_BYTES = 1_000_000


class Log:
    """The log file of mongod, searched from its latest start on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._start = 0

    def trim(self) -> None:
        """Rotate a large log, keeping one older file. It is copied, because mongod keeps the file open."""
        if self._path.exists() and self._path.stat().st_size > MAX_LOG_BYTES:
            shutil.copyfile(self._path, self._path.with_name(f"{self._path.name}.1"))
            os.truncate(self._path, 0)
            self._start = 0

    def opened(self) -> IO[bytes]:
        log = self._path.open("ab")
        self._start = log.tell()
        return log

    def reason(self, status: int) -> str:
        """Why mongod did not start: its first error, because later ones are usually consequences."""
        words = next(self._errors(), "no error in its log")
        return f"{words} ({exit_reason(status)})"

    def _errors(self) -> Iterator[str]:
        plain = []
        for line in self._since_start().splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                plain.append(line.strip())
                continue
            if entry["s"] in {"E", "F"}:
                yield _sentence(entry)
        yield from filter(None, plain)

    def _since_start(self) -> str:
        with self._path.open("rb") as log:
            log.seek(self._start)
            return log.read(SEARCHED_LOG_BYTES).decode(errors="replace")


def exit_reason(status: int) -> str:
    return f"killed by signal {-status}" if status < 0 else f"exit status {status}"


def _sentence(entry: dict[str, Any]) -> str:
    attributes = entry.get("attr", {})
    details = [attributes.get("error"), attributes.get("message")]
    words = [entry["msg"], *(word for detail in details for word in _words(detail))]
    return " ".join(": ".join(words).split())[:300]


def _words(detail: Any) -> Iterator[str]:
    """The human-readable parts of an error, without its codes."""
    if isinstance(detail, str):
        yield detail
    elif isinstance(detail, dict):
        yield from (detail[key] for key in ("errmsg", "msg", "error_str") if key in detail)
