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
from service.mongodb_versions import outdated_warning, server_version

log = logging.getLogger("kalends")
POLL_SECONDS = 0.5
REMINDER_SECONDS = 60.0
"""Seconds between warnings that MongoDB is not reachable."""
READY_TIMEOUT = ClientTimeout(total=60)
"""The first request waits in the socket's backlog until the service accepts connections."""


@asynccontextmanager
async def announcing(settings: Settings, location: Location, address: tuple[Any, ...]) -> AsyncIterator[None]:
    """Emit the startup messages from a background task, which is cancelled on exit."""
    async with background_task(_announce(settings, location, address)):
        yield


async def _announce(settings: Settings, location: Location, address: tuple[Any, ...]) -> None:
    if is_exposed(settings):
        log.warning(
            "every caller may write, including through a proxy; to require tokens, set KALENDS_AUTH=token"
        )
    if not location.data_dir:
        await _wait_for_mongodb(location)
    await _wait_until_ready(address)
    print(banner(settings, location), flush=True)


def is_exposed(settings: Settings) -> bool:
    """Whether open mode is only the default but a public base URL implies a proxy in front of the service."""
    return (
        not settings.auth
        and bool(settings.base_url)
        and not is_loopback(urlsplit(settings.base_url).hostname or "")
    )


async def _wait_for_mongodb(location: Location) -> None:
    """Return when MongoDB responds; any error other than a lost connection is left to the store."""
    warned_at = -REMINDER_SECONDS
    while True:
        try:
            if warning := outdated_warning(await server_version(location.uri)):
                log.warning(warning)
        except ConnectionFailure as error:
            if time.monotonic() - warned_at >= REMINDER_SECONDS:
                warned_at = time.monotonic()
                reason = brief(error).removeprefix(f"{location.hosts}: ")
                log.warning("waiting for MongoDB at %s: %s", location.hosts, reason)
            await asyncio.sleep(POLL_SECONDS)
            continue
        except PyMongoError as error:
            log.debug("cannot determine the version of MongoDB: %s", brief(error))
        return


async def _wait_until_ready(address: tuple[Any, ...]) -> None:
    """Poll the readiness endpoint, as an orchestrator would; any worker may answer."""
    host, port = address[:2]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}/health/ready"
    async with ClientSession(connector=TCPConnector(force_close=True), timeout=READY_TIMEOUT) as session:
        while not await _is_ready(session, url):  # noqa: ASYNC110 - another process may answer
            await asyncio.sleep(POLL_SECONDS)


async def _is_ready(session: ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as response:
            return response.status == 200
    except (ClientError, TimeoutError, OSError):
        return False


def banner(settings: Settings, location: Location) -> str:
    api = settings.address + settings.namespace
    return (
        f"Kalends is ready.\n"
        f"  Pages {settings.address}/\n"
        f"  API   {api}/\n"
        f"  Docs  {settings.address}/docs\n"
        f"  Try   curl '{api}/events'\n"
        f"  Data  {location}\n"
        f"Writes: {WRITE_ACCESS[settings.auth_mode]}. Stop with Ctrl-C."
    )


WRITE_ACCESS = {
    "open": "open to every caller",
    "token": "with a token (kalends token create --role editor --name me)",
}
