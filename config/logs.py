"""Logging: one line per event on standard error."""

from __future__ import annotations

import logging

from aiohttp.http_exceptions import HttpProcessingError


class WithoutTheRequest(logging.Filter):
    """Takes the text of a malformed request out of the log: it may hold a token or a password."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, HttpProcessingError):
            record.msg, record.args = f"{record.getMessage()}: {type(error).__name__}", None
            record.exc_info = record.exc_text = None
        return True


def configure(level: str) -> None:
    logging.basicConfig(
        level=level.upper(), format="%(asctime)s %(levelname)-7s %(name)s: %(message)s", force=True
    )
    for noisy in ("pymongo", "asyncio", "aiohttp.access"):
        logging.getLogger(noisy).setLevel("WARNING")
    for server in ("aiohttp.server", "gunicorn.error"):
        logger = logging.getLogger(server)
        if not any(isinstance(one, WithoutTheRequest) for one in logger.filters):
            logger.addFilter(WithoutTheRequest())
