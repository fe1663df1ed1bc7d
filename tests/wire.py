"""A connection that hides nothing: no retries, no pool, and every end of it is seen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.checker import DEADLINE


@dataclass
class Answer:
    """A status line, headers and a body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def is_last(self) -> bool:
        return self.headers.get("connection", "").lower() == "close"


@dataclass
class Wire:
    """One connection to the service."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @property
    def port(self) -> int:
        return int(self.writer.get_extra_info("sockname")[1])

    async def get(self, path: str) -> Answer:
        await self.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        return await self.answer()

    async def begin(self, path: str, body: Any) -> bytes:
        """A request that the service has begun to answer; its body is handed back, to be sent."""
        text = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        await self.send(f"{head}Content-Length: {len(text)}\r\nExpect: 100-continue\r\n\r\n".encode())
        assert (await self.answer()).status == 100
        return text

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> Answer:
        async with asyncio.timeout(DEADLINE):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {
                name.lower(): value.strip() for name, _, value in (row.partition(":") for row in head[1:])
            }
            body = await self.reader.readexactly(int(headers.get("content-length", "0")))
            return Answer(int(head[0].split()[1]), headers, body)

    async def ends(self) -> None:
        """The other side closes the connection, as one that has nothing more to say."""
        async with asyncio.timeout(DEADLINE):
            assert await self.reader.read() == b""


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Wire]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Wire(reader, writer)
    finally:
        writer.transport.abort()


async def is_refused(port: int) -> bool:
    try:
        async with connected(port):
            return False
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:  # it waited to be taken when the service closed its door
        return False
