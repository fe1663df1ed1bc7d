"""A TCP proxy that forwards every request, and loses a third of the answers by cutting the connection."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import Any, Self

from aiohttp import ClientError, ClientSession, TCPConnector

MAX_ATTEMPTS = 50


class CuttingProxy:
    """Listens on a free port. Each request needs a connection of its own."""

    def __init__(self, port: int, seed: int = 7) -> None:
        self._upstream, self._random = port, random.Random(seed)
        self.cut = 0
        """Number of answers that clients did not get."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._forward, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]
        self._session = ClientSession(connector=TCPConnector(force_close=True))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()
        self._server.close()
        await self._server.wait_closed()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, sender = await asyncio.open_connection("127.0.0.1", self._upstream)
        request = asyncio.create_task(self._pump(reader, sender))
        try:
            # The answer has begun: the service has done its work.
            answer = await upstream.read(65536)
            if self._random.random() < 1 / 3:
                self.cut += 1
                writer.transport.abort()
                return
            while answer:
                writer.write(answer)
                await writer.drain()
                answer = await upstream.read(65536)
        finally:
            request.cancel()
            for stream in (sender, writer):
                stream.close()
                with suppress(OSError):
                    await stream.wait_closed()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()

    async def created(self, path: str, body: dict[str, Any], key: str) -> int:
        """The ID of a record that is created through the proxy, with as many requests as it takes."""
        address, headers = f"http://127.0.0.1:{self._port}{path}", {"Idempotency-Key": key}
        for _ in range(MAX_ATTEMPTS):
            with suppress(ClientError, ConnectionError):
                async with self._session.post(address, json=body, headers=headers) as answer:
                    record = await answer.json()
                    assert answer.status == 201, record
                    return int(record["id"])
        raise AssertionError(f"{key}: no answer")
