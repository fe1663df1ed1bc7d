"""The same question in the words of each system; None where a system has no word for it."""

from __future__ import annotations

import json
from typing import Any, Protocol

from benchmarks.asks import Ask
from benchmarks.facts import Answer


class Dialect(Protocol):
    """How one system is spoken to."""

    def request(self, ask: Ask) -> bytes | None: ...

    def page(self, body: bytes) -> Answer: ...


def http(method: str, path: str, body: Any = None, token: str = "") -> bytes:
    """A request as it goes over the wire."""
    sent = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n"
    if token:
        head += f"Authorization: Bearer {token}\r\n"
    if sent:
        head += f"Content-Type: application/json\r\nContent-Length: {len(sent)}\r\n"
    return f"{head}\r\n".encode() + sent
