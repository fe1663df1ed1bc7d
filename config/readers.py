"""Parsers for setting values; each raises ValueError with a description of what is allowed."""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from urllib.parse import urlsplit


def whole(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,10}", text) or not low <= int(text) <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return int(text)

    return read


def decimal(low: float, high: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text) or not low <= float(text) <= high:
            raise ValueError(f"a number from {low:g} to {high:g}")
        return float(text)

    return read


def one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text.lower() not in words:
            raise ValueError("one of " + ", ".join(words))
        return text.lower()

    return read


def word(text: str) -> str:
    if not text.strip() or "\0" in text:
        raise ValueError("non-empty text")
    return text.strip()


def database_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,38}", text):
        raise ValueError("1 to 38 letters, digits, '-' or '_'")
    return text


def mount_path(text: str) -> str:
    if text.strip("/") and not re.fullmatch(r"/?[A-Za-z0-9._~-]+(/[A-Za-z0-9._~-]+)*/?", text):
        raise ValueError("a path such as /wp-json")
    return "/" + text.strip("/") if text.strip("/") else ""


def mount_paths(text: str) -> tuple[str, ...]:
    return tuple(path for path in map(mount_path, text.split(",")) if path)


def web_address(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("an address such as https://events.example.org")
    return text.rstrip("/")


def networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        return tuple(ip_network(part.strip()) for part in text.split(","))
    except ValueError:
        raise ValueError("networks such as 10.0.0.0/8 or 192.0.2.1") from None


def origins(text: str) -> tuple[str, ...]:
    if text == "none":
        return ()
    found = tuple(part.strip().rstrip("/").lower() for part in text.split(","))
    if not all(re.fullmatch(r"\*|https?://[a-z0-9.-]+(:[0-9]{1,5})?", one) for one in found):
        raise ValueError("*, none, or origins such as https://www.example.org")
    return found


def mongodb_uri(text: str) -> str:
    if not text.startswith(("mongodb://", "mongodb+srv://")):
        raise ValueError("an address such as mongodb://host:27017/?replicaSet=rs0")
    return text


def directory(text: str) -> Path:
    return Path(word(text)).expanduser()
