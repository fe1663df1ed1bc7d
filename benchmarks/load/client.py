"""The load generator: a separate process that keeps connections busy with prepared requests.

Reads a job as JSON from stdin (`port`, `requests`, `once`, `connections`, `seconds`) and writes the
measurements as JSON to stdout. With `once` no request is sent a second time: it ends when there are no more.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Iterator
from functools import partial
from itertools import cycle
from math import inf
from time import perf_counter
from typing import Any

import uvloop

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
CLOSES = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
PATIENCE = 600.0
"""Seconds to wait for responses in flight at the end, so that they do not slow down the next system."""


class Load:
    """The requests to send, and the measurements."""

    def __init__(self, job: dict[str, Any]) -> None:
        requests = [text.encode("latin-1") for text in job["requests"]]
        self.port: int = job["port"]
        self.requests: Iterator[bytes] = iter(requests) if job["once"] else cycle(requests)
        self.left: float = len(requests) if job["once"] else inf
        """Number of requests that may still be sent."""
        self.latencies: list[float] = []
        self.size = 0
        self.errors: list[str] = []
        self.begun = perf_counter()
        self.until = self.begun + job["seconds"]

    def ended(self) -> bool:
        return self.left <= 0 or perf_counter() >= self.until or len(self.errors) > 10

    def next(self) -> bytes:
        self.left -= 1
        return next(self.requests)

    def measured(self) -> dict[str, Any]:
        took = sorted(self.latencies)
        number = len(took)
        return {
            "requests": number,
            "rate": number / (perf_counter() - self.begun),
            "p50": took[number // 2] * 1000 if took else None,
            "p99": took[min(number - 1, number * 99 // 100)] * 1000 if took else None,
            "max": took[-1] * 1000 if took else None,
            "size": self.size / number if number else 0,
            "errors": self.errors,
        }


class Connection(asyncio.Protocol):
    """One connection: sends the next request when the last response is complete."""

    def __init__(self, load: Load, done: asyncio.Future[None]) -> None:
        self.load = load
        self.done = done
        self.head = b""
        self.missing = -1
        self.closes = False
        self.sent = perf_counter()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.send()

    def send(self) -> None:
        if self.load.ended():
            self.finish()
            return
        self.head, self.missing = b"", -1
        self.sent = perf_counter()
        self.transport.write(self.load.next())

    def data_received(self, data: bytes) -> None:
        if self.missing < 0:
            self.head += data
            at = self.head.find(b"\r\n\r\n")
            if at < 0:
                return
            length = LENGTH.search(self.head, 0, at + 2)
            self.check(length)
            if self.done.done():
                return
            assert length
            size = int(length[1])
            self.load.size += size
            self.missing = size - (len(self.head) - at - 4)
            self.closes = bool(CLOSES.search(self.head, 0, at + 2))
        else:
            self.missing -= len(data)
        if self.missing <= 0:
            self.load.latencies.append(perf_counter() - self.sent)
            if not self.closes:
                self.send()

    def check(self, length: re.Match[bytes] | None) -> None:
        if self.head[9:10] != b"2" or not length or length[1] == b"0":
            self.load.errors.append(self.head[:300].decode("latin-1"))
            self.finish()

    def connection_lost(self, error: Exception | None) -> None:
        if self.done.done():
            return
        if self.missing == 0 and self.closes:
            self.done.set_result(None)
        else:
            self.load.errors.append(f"connection lost: {error}")
            self.finish()

    def finish(self) -> None:
        if not self.done.done():
            self.done.set_result(None)
        self.transport.close()


async def keep_busy(load: Load) -> None:
    """Opens one connection after the other: some servers close it after each response."""
    loop = asyncio.get_running_loop()
    while not load.ended():
        done: asyncio.Future[None] = loop.create_future()
        try:
            await loop.create_connection(partial(Connection, load, done), "127.0.0.1", load.port)
            await asyncio.wait_for(done, PATIENCE)
        except OSError as error:  # includes TimeoutError
            load.errors.append(f"{type(error).__name__}: {error}")


async def measure(job: dict[str, Any]) -> dict[str, Any]:
    load = Load(job)
    async with asyncio.TaskGroup() as group:
        for _ in range(job["connections"]):
            group.create_task(keep_busy(load))
    return load.measured()


if __name__ == "__main__":
    print(json.dumps(uvloop.run(measure(json.load(sys.stdin)))))
