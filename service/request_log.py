"""The request log: one line for each request, without its query string, headers and body."""

from __future__ import annotations

import logging
import re
from time import perf_counter

from aiohttp import web
from aiohttp.abc import AbstractAccessLogger

from handlers.records import CALLER
from schemas.caller import EVERYBODY
from service.request_ids import id_of

log = logging.getLogger("kalends.requests")
LINE = "%s %s %d %d B %.2f ms %s %s"
LONGEST_PATH = 500
UNPRINTABLE = re.compile(r"[^!-~]")


class RequestLog(AbstractAccessLogger):
    """Called by aiohttp when an answer has been sent, or could not be."""

    @property
    def enabled(self) -> bool:
        return self.logger.isEnabledFor(logging.INFO)

    def log(self, request: web.BaseRequest, response: web.StreamResponse, time: float) -> None:
        path = path_of(request)
        # Health checks come every few seconds; nobody wants to read them.
        level = logging.DEBUG if path.startswith("/health/") else logging.INFO
        if self.logger.isEnabledFor(level):
            record = self.logger.makeRecord(self.logger.name, level, "", 0, LINE, (), None)
            record.fields = fields = {
                "method": "-" if is_unreadable(request) else request.method,
                "path": path,
                "status": response.status,
                "bytes": response.body_length,
                "milliseconds": round(milliseconds_since(request), 2),
                "role": role_of(request),
                "request_id": id_of(request),
            }
            record.args = tuple(fields.values())
            self.logger.handle(record)


def milliseconds_since(request: web.BaseRequest) -> float:
    return (perf_counter() - float(request["began"])) * 1000


def is_unreadable(request: web.BaseRequest) -> bool:
    """Whether the request could not be parsed: aiohttp puts another in its place."""
    return "unreadable" in request


def path_of(request: web.BaseRequest) -> str:
    """The path as it was sent, percent-encoded, so that it cannot start a new line in the log."""
    path = "" if is_unreadable(request) else request.rel_url.raw_path[:LONGEST_PATH]
    if not (path.isascii() and path.isprintable()):
        path = UNPRINTABLE.sub(lambda found: f"\\x{ord(found[0]):02x}", path)
    return path or "-"


def role_of(request: web.BaseRequest) -> str:
    """The caller's role: `public` without a token, `open` in open mode, `-` where nobody was identified."""
    caller = request.get(CALLER)
    if caller is None:
        return "-"
    if caller is EVERYBODY:
        return "open"
    return str(caller.role or "public")
