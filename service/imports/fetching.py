"""Reads over HTTP: one request at a time, with limits for time and size, and repeated after failures."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

import aiohttp
from yarl import URL

from config.version import VERSION
from service.imports.item import SourceError

REQUEST_SECONDS = 60.0
SILENT_SECONDS = 20.0
"""How long a server may send nothing."""
MAX_REDIRECTS = 5
ATTEMPTS = 4
PAUSE_SECONDS = 1.0
"""The pause before the second attempt; it doubles before each further one."""
MAX_PAUSE_SECONDS = 60.0
"""The longest pause that a server can ask for with Retry-After."""
TEMPORARY = {429, 500, 502, 503, 504}
ACCEPT = "application/json, text/calendar, text/csv;q=0.9, */*;q=0.5"


class Answer(NamedTuple):
    """A response that was read completely; `url` is where the redirects ended."""

    url: URL
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_html(self) -> bool:
        return self.body[:1000].lstrip()[:1] == b"<"


class TemporaryError(Exception):
    """The request may succeed later; `pause` is how long the server asks to wait, in seconds."""

    def __init__(self, reason: str, pause: float = 0.0) -> None:
        super().__init__(reason)
        self.pause = pause


class Fetcher:
    """Sends GET requests. The session does not send credentials to other hosts that it is redirected to."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def get(self, url: URL, max_bytes: int) -> Answer:
        """The answer to a request, whatever its status; raises SourceError if there is none."""
        pause, reason = PAUSE_SECONDS, TemporaryError("")
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(min(max(pause, reason.pause), MAX_PAUSE_SECONDS))
                pause *= 2
            try:
                return await self._attempt(url, max_bytes)
            except TemporaryError as error:
                reason = error
        raise SourceError(f"{shown(url)} {reason}")

    async def _attempt(self, url: URL, max_bytes: int) -> Answer:
        try:
            async with self._session.get(url, max_redirects=MAX_REDIRECTS) as response:
                if response.status in TEMPORARY:
                    raise TemporaryError(f"answers {response.status}", _retry_after(response))
                body = await _limited(response, max_bytes)
                return Answer(response.url, response.status, response.headers, body)
        except TimeoutError:
            raise TemporaryError("does not answer in time") from None
        except aiohttp.TooManyRedirects:
            raise SourceError(f"{shown(url)} redirects more than {MAX_REDIRECTS} times") from None
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError):
            raise SourceError(f"{shown(url)} is, or redirects to, an invalid address") from None
        except aiohttp.ClientConnectorCertificateError as error:
            reason = getattr(error.certificate_error, "verify_message", "") or error.certificate_error
            raise SourceError(f"{shown(url)} has an invalid certificate: {reason}") from None
        except aiohttp.ClientConnectorError as error:
            raise TemporaryError(f"cannot be reached: {_reason(error.os_error)}") from None
        except (aiohttp.ClientError, OSError) as error:
            raise TemporaryError(f"cannot be read: {error or type(error).__name__}") from None


async def _limited(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > max_bytes:
            raise SourceError(f"{shown(response.url)} sends more than {max_bytes // 1_000_000} MB")
    return bytes(body)


def _reason(error: OSError) -> str:
    """What is wrong, without the address, which asyncio adds to the text of most errors."""
    if isinstance(error, ssl.SSLError):
        return f"no encrypted connection: {error.reason or error}"
    is_dns = isinstance(error, socket.gaierror) or not error.errno
    return str(error.strerror or error) if is_dns else os.strerror(error.errno or 0)


def _retry_after(response: aiohttp.ClientResponse) -> float:
    said = response.headers.get("Retry-After", "")
    return float(said) if said.isascii() and said.isdigit() else 0.0


def shown(url: URL) -> str:
    """An address in a message, without credentials."""
    return str(url.with_user(None) if url.user else url)


@asynccontextmanager
async def fetcher(user: str, password: str) -> AsyncIterator[Fetcher]:
    timeout = aiohttp.ClientTimeout(REQUEST_SECONDS, sock_connect=SILENT_SECONDS, sock_read=SILENT_SECONDS)
    headers = {"User-Agent": f"Kalends/{VERSION}", "Accept": ACCEPT}
    if user:
        headers["Authorization"] = aiohttp.encode_basic_auth(user, password)
    connector = aiohttp.TCPConnector(limit=1)
    async with aiohttp.ClientSession(timeout=timeout, headers=headers, connector=connector) as session:
        yield Fetcher(session)
