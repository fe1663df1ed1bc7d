"""Which addresses webhooks may be sent to: public ones, and private ones that the operator allows."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver
from yarl import URL

Network = IPv4Network | IPv6Network
NOT_PUBLIC = tuple(
    ip_network(text)
    for text in (
        *("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "::/96", "::ffff:0:0:0/96"),
        *("fec0::/10", "5f00::/16", "192.0.0.0/24", "192.88.99.0/24"),
    )
)
"""What the library takes for public: IPv4 addresses within IPv6, which may lead to a private network, and
networks for special purposes."""


class AddressRefused(OSError):
    """A webhook may not be sent to this address."""

    def __init__(self, address: str) -> None:
        super().__init__(f"{address} is a private address; KALENDS_WEBHOOK_NETWORKS can allow it")


def check_address(text: str, allowed: Sequence[Network]) -> None:
    """Raise AddressRefused for an IP address that webhooks may not be sent to."""
    address: IPv4Address | IPv6Address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    is_special = address.is_multicast or any(address in network for network in NOT_PUBLIC)
    is_public = address.is_global and not is_special
    if not is_public and not any(address in network for network in allowed):
        raise AddressRefused(text)


def check_url(url: str, allowed: Sequence[Network]) -> None:
    """Raise AddressRefused if the host of a URL is such an IP address, ValueError if it is no web address."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be an address such as https://example.org/hook")
    if parts.username is not None or parts.fragment:
        raise ValueError("must not contain a user name or a fragment")
    host = URL(url).host or ""  # as it will be requested: other digits and dots are normalized
    try:
        ip_address(host)
    except ValueError:
        return  # a name: the resolver checks its addresses
    check_address(host, allowed)


class GuardedResolver(AbstractResolver):
    """Resolves names, and checks the addresses that are about to be used."""

    def __init__(self, allowed: Sequence[Network]) -> None:
        self._resolver, self._allowed = ThreadedResolver(), allowed

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        for one in found:
            check_address(one["host"], self._allowed)
        return found

    async def close(self) -> None:
        await self._resolver.close()
