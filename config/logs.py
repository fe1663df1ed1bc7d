"""Logging to standard error, as lines of text or as one JSON object per line."""

from __future__ import annotations

import json
import logging
import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any


class TextFormatter(logging.Formatter):
    """Human-readable lines: local time, level, logger, message."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name that logging calls
        when = f"{_local_second(int(record.created))},{int(record.msecs):03d}"
        return f"{when} {record.levelname:<7} {record.name}: {record.message}"


class JsonFormatter(logging.Formatter):
    """One JSON object per line; the items of `extra={"fields": {...}}` become members of it."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": f"{_utc_second(int(record.created))}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        if record.stack_info:
            entry["stack"] = self.formatStack(record.stack_info)
        return json.dumps(entry, default=str)


@lru_cache(1)
def _local_second(second: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))


@lru_cache(1)
def _utc_second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def configure(level: str, form: str = "text") -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # A line per request must be cheap: skip the lookups of values that neither format shows.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    for noisy in ("pymongo", "asyncio", "aiohttp.access"):
        logging.getLogger(noisy).setLevel("WARNING")
    # With a traceback the driver logs each cursor that it cannot close as its server is lost; MongoDB closes
    # it after ten minutes anyway, and what requests need of that server fails with errors of its own.
    logging.getLogger("pymongo.client").setLevel("CRITICAL")
