"""Log messages about MongoDB failures: short, and once per outage."""

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
        text = brief(error)
        if text not in self._logged:
            self._logged.add(text)
            self._log.warning("%s failed; retrying: %s", self._work, text)

    def succeeded(self) -> None:
        if self._logged:
            self._logged.clear()
            self._log.info("%s succeeded again", self._work)
