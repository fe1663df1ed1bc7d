"""The access log: one line per request, without its query string, headers and body."""

from __future__ import annotations

import asyncio
import logging
import re
from time import perf_counter, time
from typing import Any

from aiohttp import web

from handlers.records import CALLER
from schemas.caller import EVERYBODY
from service.http.request_ids import id_of
from service.metrics import PATH

log = logging.getLogger("kalends.requests")
LINE_FORMAT = "%s %s %d %d B %.2f ms %s %s"
MAX_PATH_CHARS = 500
TEMPLATE = vars(logging.makeLogRecord({"name": log.name, "msg": LINE_FORMAT}))
WRITE_SECONDS = 0.05
"""How long lines wait for others. A process that is killed loses those of this time."""
UNPRINTABLE = re.compile(r"[^!-~]")


class RequestLog:
    """The lines of one process. They are written together: cached lists are 10 % slower if each is followed
    by its line."""

    def __init__(self) -> None:
        self._records: list[logging.LogRecord] = []

    def add(self, request: web.BaseRequest, response: web.StreamResponse) -> None:
        """Log a response that has been sent, or failed to be sent."""
        path = path_of(request)
        # Health checks and scrapes come every few seconds and would flood the log.
        level = logging.DEBUG if path.startswith("/health/") or path == PATH else logging.INFO
        if not log.isEnabledFor(level):
            return
        if not self._records:
            asyncio.get_running_loop().call_later(WRITE_SECONDS, self.write)
        fields = {
            "method": "-" if request.get("unreadable") else request.method,
            "path": path,
            "status": response.status,
            "bytes": response.body_length,
            "milliseconds": round(elapsed_milliseconds(request), 2),
            "role": role_of(request),
            "request_id": id_of(request),
        }
        self._records.append(log_record(level, fields))

    def write(self) -> None:
        records, self._records = self._records, []
        for record in records:
            log.handle(record)


def log_record(level: int, fields: dict[str, Any]) -> logging.LogRecord:
    """A log record, without the lookups of the file, thread and process, which no format shows: they would
    take longer than writing the line."""
    record, now = logging.LogRecord.__new__(logging.LogRecord), time()
    record.__dict__.update(
        TEMPLATE,
        levelno=level,
        levelname=logging.getLevelName(level),
        created=now,
        msecs=now % 1 * 1000,
        args=tuple(fields.values()),
        fields=fields,
    )
    return record


def elapsed_milliseconds(request: web.BaseRequest) -> float:
    return (perf_counter() - float(request["started_at"])) * 1000


def path_of(request: web.BaseRequest) -> str:
    """The path as sent, percent-encoded, so that it cannot inject a line into the log."""
    path = "" if request.get("unreadable") else request.rel_url.raw_path[:MAX_PATH_CHARS]
    if not (path.isascii() and path.isprintable()):
        path = UNPRINTABLE.sub(lambda found: f"\\x{ord(found[0]):02x}", path)
    return path or "-"


def role_of(request: web.BaseRequest) -> str:
    """The caller's role: `public` without a token, `open` in open mode, `-` if they were not identified."""
    caller = request.get(CALLER)
    if caller is None:
        return "-"
    if caller is EVERYBODY:
        return "open"
    return str(caller.role or "public")
