"""Translates requests to the API of each system; None if a system does not support one."""

from __future__ import annotations

import json
from typing import Any, Protocol

from benchmarks.asks import Ask
from benchmarks.facts import Answer


class Dialect(Protocol):
    """The API of one system."""

    def request(self, ask: Ask) -> bytes | None: ...

    def page(self, body: bytes) -> Answer: ...


def http(method: str, path: str, body: Any = None, token: str = "") -> bytes:
    """An HTTP request as sent over the wire."""
    sent = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n"
    if token:
        head += f"Authorization: Bearer {token}\r\n"
    if sent:
        head += f"Content-Type: application/json\r\nContent-Length: {len(sent)}\r\n"
    return f"{head}\r\n".encode() + sent
