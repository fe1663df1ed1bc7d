"""Logging: one line per event on standard error."""

from __future__ import annotations

import logging


def configure(level: str) -> None:
    logging.basicConfig(
        level=level.upper(), format="%(asctime)s %(levelname)-7s %(name)s: %(message)s", force=True
    )
    for noisy in ("pymongo", "asyncio", "aiohttp.access"):
        logging.getLogger(noisy).setLevel("WARNING")
