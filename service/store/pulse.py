"""Sends `hello` to the primary thousands of times a second, over a connection of its own.

Every response depends on this command, and through the driver it would cost more than the rest of a
response: a thread switch, a session, a retry. MongoDB answers it without authentication. If the connection
cannot be used (a server that requires TLS, a failover, a server that hangs), the driver sends the command.
"""

from __future__ import annotations

import asyncio
import struct
from typing import Any, cast

import bson

from service.store.mongo.client import Client

Address = tuple[str, int | None]
PREFIX = struct.Struct("<iiiiiB")
"""Header of an OP_MSG of the wire protocol: length, request id, response to, opcode, flags, section kind."""
MESSAGE = 2013
QUESTION = bson.encode({"hello": 1, "$db": "admin"})
HELLO = PREFIX.pack(PREFIX.size + len(QUESTION), 1, 0, MESSAGE, 0, 0) + QUESTION
LONGEST = 1.0
"""Timeout for connecting and for a response, in seconds."""


class Line(asyncio.Protocol):
    """A connection for one request at a time."""

    def __init__(self) -> None:
        self._received = b""
        self._answer: asyncio.Future[dict[str, Any]] | None = None
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    async def ask(self) -> dict[str, Any]:
        if self._transport is None or self._transport.is_closing():
            raise ConnectionError
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(HELLO)
        async with asyncio.timeout(LONGEST):
            return await self._answer

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) < PREFIX.size or len(self._received) < PREFIX.unpack_from(self._received)[0]:
            return
        whole, self._received = self._received, b""
        if self._answer and not self._answer.done():
            self._answer.set_result(bson.decode(whole[PREFIX.size :]))

    def connection_lost(self, _: Exception | None) -> None:
        if self._answer and not self._answer.done():
            self._answer.set_exception(ConnectionError())

    def close(self) -> None:
        if self._transport:
            self._transport.close()


class Pulse:
    """Sends `hello` to the primary, and reconnects after a failover."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._line: Line | None = None
        self._address: Address | None = None

    async def feel(self) -> dict[str, Any]:
        """The primary's response to `hello`; raises OSError if the connection fails or times out."""
        if (address := self._primary()) is None:
            raise ConnectionError
        try:
            if self._line is None or address != self._address:
                self.close()
                self._line, self._address = await self._connected(address), address
            said = await self._line.ask()
            if not said.get("isWritablePrimary"):
                raise ConnectionError
        except (OSError, bson.errors.InvalidBSON):
            self.close()
            raise
        return said

    def _primary(self) -> Address | None:
        """The address of the primary, or of the only known server."""
        nodes = self._client.delegate.nodes
        return self._client.delegate.primary or (next(iter(nodes)) if len(nodes) == 1 else None)

    async def _connected(self, address: Address) -> Line:
        loop, (host, port) = asyncio.get_running_loop(), address
        async with asyncio.timeout(LONGEST):
            if port is None:
                _, line = await loop.create_unix_connection(Line, host)
            else:
                _, line = await loop.create_connection(Line, host, port)
        return line

    def close(self) -> None:
        if self._line:
            self._line.close()
        self._line = None
