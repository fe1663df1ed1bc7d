"""Startup messages: MongoDB is not reachable yet, MongoDB is too old, the service is ready."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector
from pymongo.errors import ConnectionFailure, PyMongoError

from config import Settings
from config.settings import is_loopback
from service.background import background_task
from service.database import Location
from service.failures import brief
from service.mongodb_versions import server_version, warning_about

log = logging.getLogger("kalends")
PAUSE = 0.5
REMINDER = 60.0
"""Seconds between warnings that MongoDB is not reachable."""
PATIENCE = ClientTimeout(total=60)
"""The first request waits in the socket's backlog until the service accepts connections."""


@asynccontextmanager
async def announcing(
    settings: Settings, location: Location, listening: tuple[Any, ...]
) -> AsyncIterator[None]:
    """Emit the startup messages from a background task, which is cancelled on exit."""
    async with background_task(_announce(settings, location, listening)):
        yield


async def _announce(settings: Settings, location: Location, listening: tuple[Any, ...]) -> None:
    if is_exposed(settings):
        log.warning(
            "every caller may write, including through a proxy; to require tokens, set KALENDS_AUTH=token"
        )
    if not location.data_dir:
        await _mongodb_answers(location)
    await _service_is_ready(listening)
    print(banner(settings, location), flush=True)


def is_exposed(settings: Settings) -> bool:
    """Whether open mode is only the default but a public base URL implies a proxy in front of the service."""
    return (
        not settings.auth
        and bool(settings.base_url)
        and not is_loopback(urlsplit(settings.base_url).hostname or "")
    )


async def _mongodb_answers(location: Location) -> None:
    """Return when MongoDB responds; any error other than a lost connection is left to the store."""
    said_at = -REMINDER
    while True:
        try:
            if warning := warning_about(await server_version(location.uri)):
                log.warning(warning)
        except ConnectionFailure as error:
            if time.monotonic() - said_at >= REMINDER:
                said_at = time.monotonic()
                reason = brief(error).removeprefix(f"{location.hosts}: ")
                log.warning("waiting for MongoDB at %s: %s", location.hosts, reason)
            await asyncio.sleep(PAUSE)
            continue
        except PyMongoError as error:
            log.debug("cannot determine the version of MongoDB: %s", brief(error))
        return


async def _service_is_ready(listening: tuple[Any, ...]) -> None:
    """Poll the readiness endpoint, as an orchestrator would; any worker may answer."""
    host, port = listening[:2]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}/health/ready"
    async with ClientSession(connector=TCPConnector(force_close=True), timeout=PATIENCE) as session:
        while not await _answers(session, url):  # noqa: ASYNC110 - another process may answer
            await asyncio.sleep(PAUSE)


async def _answers(session: ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as answer:
            return answer.status == 200
    except (ClientError, TimeoutError, OSError):
        return False


def banner(settings: Settings, location: Location) -> str:
    api = settings.address + settings.namespace
    return (
        f"Kalends is ready.\n"
        f"  API   {api}/\n"
        f"  Docs  {settings.address}/docs\n"
        f"  Try   curl '{api}/events'\n"
        f"  Data  {location}\n"
        f"Writes: {WRITES[settings.access]}. Stop with Ctrl-C."
    )


WRITES = {
    "open": "open to every caller",
    "token": "with a token (kalends token create --role editor --name me)",
}
