"""Writes at a steady pace until stdin is closed: changes of events, or documents of another application.

Reads a job as one line of JSON from stdin (`rate`, and `port` and `requests` or `uri`), and writes the
writes per second and the errors as JSON to stdout.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from itertools import count, cycle
from typing import Any

from pymongo import AsyncMongoClient
from pymongo.errors import PyMongoError

DATABASE = "bench_neighbour"
Write = Callable[[], Awaitable[None]]


class Steady:
    """Starts a write at each tick, whether or not the last one has ended."""

    def __init__(self, write: Write, rate: float) -> None:
        self._write = write
        self._rate = rate
        self.writes = 0
        self.seconds = 0.0
        self.errors: list[str] = []

    async def run(self, stop: asyncio.Future[str]) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        async with asyncio.TaskGroup() as group:
            for at in count():
                await asyncio.wait([stop], timeout=max(0.0, begun + at / self._rate - loop.time()))
                if stop.done():
                    self.seconds = loop.time() - begun
                    return
                group.create_task(self._once())

    async def _once(self) -> None:
        try:
            await self._write()
            self.writes += 1
        except (OSError, RuntimeError, PyMongoError) as error:
            self.errors.append(f"{type(error).__name__}: {error}")


def changes(job: dict[str, Any]) -> Write:
    """Sends the next request on a connection of its own."""
    requests = cycle(text.encode("latin-1") for text in job["requests"])

    async def write() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", job["port"])
        writer.write(next(requests).replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
        said = await reader.read()
        writer.close()
        if said[9:10] != b"2":
            raise RuntimeError(said[:300].decode("latin-1"))

    return write


def documents(job: dict[str, Any]) -> Write:
    """Inserts a small document into another database of the same MongoDB."""
    collection: Any = AsyncMongoClient(job["uri"], w="majority")[DATABASE]["documents"]

    async def write() -> None:
        await collection.insert_one({"text": "written by another application"})

    return write


async def main() -> None:
    loop = asyncio.get_running_loop()
    job = json.loads(await loop.run_in_executor(None, sys.stdin.readline))
    steady = Steady(documents(job) if "uri" in job else changes(job), job["rate"])
    await steady.run(loop.run_in_executor(None, sys.stdin.read))
    print(json.dumps({"rate": steady.writes / steady.seconds, "errors": steady.errors}))


if __name__ == "__main__":
    asyncio.run(main())
