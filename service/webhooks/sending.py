"""Sends signed messages to webhooks, after the Standard Webhooks scheme."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from ssl import SSLCertVerificationError
from typing import NamedTuple

from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientResponseError,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
)
from standardwebhooks.webhooks import Webhook as Signer

from config.version import VERSION
from service.webhooks.addresses import AddressRefused, GuardedResolver, Network, check_url

TIMEOUT = ClientTimeout(total=15, connect=5)
REDIRECTS = range(300, 400)


class Message(NamedTuple):
    """One message; its ID is the same whenever it is sent again."""

    id: str
    body: bytes


class Sender:
    """Sends messages, and says why one was not accepted."""

    def __init__(self, session: ClientSession, allowed: Sequence[Network]) -> None:
        self._session, self._allowed = session, allowed

    async def send(self, url: str, secret: str, message: Message) -> str | None:
        """Send a message; return None if it was accepted, otherwise what went wrong."""
        now = datetime.now(UTC)
        headers = {
            "Content-Type": "application/json",
            "webhook-id": message.id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": Signer(secret).sign(message.id, now, message.body.decode()),
        }
        try:
            check_url(url, self._allowed)
            async with self._session.post(
                url, data=message.body, headers=headers, allow_redirects=False
            ) as answer:
                return problem(answer.status)
        except TimeoutError:
            return f"no response within {TIMEOUT.total:g} seconds"
        except ClientConnectorError as error:
            return unreachable(error.os_error)
        except ClientResponseError as error:  # its text contains the address, which may be secret
            reason, _, _ = error.message.partition("\n")
            return f"no valid HTTP response: {reason.rstrip(':')}"
        except (ClientError, AddressRefused) as error:
            return str(error) or type(error).__name__


def unreachable(error: OSError) -> str:
    """Why there is no connection; of a certificate, only what is wrong with it."""
    if isinstance(error, SSLCertVerificationError):
        return f"the certificate is not trusted: {error.verify_message}"
    return str(error)


def problem(status: int) -> str | None:
    if 200 <= status < 300:
        return None
    return f"status {status}" + ("; redirects are not followed" if status in REDIRECTS else "")


@asynccontextmanager
async def open_sender(allowed: Sequence[Network]) -> AsyncIterator[Sender]:
    connector = TCPConnector(resolver=GuardedResolver(allowed), use_dns_cache=False)
    headers = {"User-Agent": f"Kalends/{VERSION}"}
    without_cookies = DummyCookieJar()  # one receiver must not see what another one on its host has set
    async with ClientSession(
        connector=connector, timeout=TIMEOUT, headers=headers, cookie_jar=without_cookies
    ) as session:
        yield Sender(session, allowed)
