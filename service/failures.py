"""Log messages about failures of retried work: once per outage, and short if MongoDB is the reason."""

from __future__ import annotations

import logging
import re

MAX_MESSAGE_CHARS = 200
DRIVER_DETAILS = re.compile(r", (Timeout|full error|Topology Description):.*", re.DOTALL)
TIMEOUTS = re.compile(r" ?\(configured timeouts:[^)]*\)")


def brief(error: Exception) -> str:
    """The driver's message without its timeouts and topology description."""
    text = " ".join(TIMEOUTS.sub("", DRIVER_DETAILS.sub("", str(error))).split())
    return text if len(text) <= MAX_MESSAGE_CHARS else f"{text[:MAX_MESSAGE_CHARS]}…"


class Failures:
    """Logs each failure of retried work once, and its recovery."""

    def __init__(self, log: logging.Logger, work: str) -> None:
        self._log, self._work = log, work
        self._logged: set[str] = set()

    def failed(self, error: Exception) -> None:
        if self._is_new(error):
            self._log.warning("%s failed; retrying: %s", self._work, brief(error))

    def failed_unexpectedly(self, error: Exception) -> None:
        """Log a failure that is a bug, with its traceback."""
        if self._is_new(error):
            self._log.error("%s failed; retrying", self._work, exc_info=error)

    def _is_new(self, error: Exception) -> bool:
        text = brief(error)
        is_new = text not in self._logged
        self._logged.add(text)
        return is_new

    def succeeded(self) -> None:
        if self._logged:
            self._logged.clear()
            self._log.info("%s succeeded again", self._work)
