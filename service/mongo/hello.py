"""Asks the primary for `hello` on the event loop, with a connection of its own.

Nearly every request needs the write clock. The driver needs a thread for each command, and its threads
compete for the GIL: cached lists are a quarter faster this way. MongoDB answers `hello` without
authentication.
"""

from __future__ import annotations

import asyncio
import struct
from contextlib import suppress
from time import monotonic
from typing import Any

import bson
from bson.errors import BSONError

HEADER = struct.Struct("<iiiiIB")
"""MongoDB's message header: length, request id, id of the request that is answered, opcode, flags, and the
kind of the section that follows."""
OP_MSG = 2013
HELLO = bson.encode({"hello": 1, "$db": "admin"})
MAX_NUMBER = 2**31
MAX_SECONDS = 0.5
PAUSE_SECONDS = 5.0
"""After a failed attempt, only the driver is used for this long: perhaps only it can reach the member."""
Address = tuple[str, int | None]


class HelloConnection:
    """A connection to one member at a time; the first request opens it."""

    def __init__(self) -> None:
        self._address: Address | None = None
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._number = 0
        self._paused_until = 0.0
        self._has_ended = False

    async def hello(self, address: Address) -> dict[str, Any] | None:
        """What the member at an address says; None if it cannot be asked."""
        if self._has_ended or monotonic() < self._paused_until:
            return None
        answer: dict[str, Any] | None = None
        try:
            # The caller asks the driver then, which reports what is wrong.
            with suppress(OSError, EOFError, ValueError, BSONError):
                async with asyncio.timeout(MAX_SECONDS):
                    answer = await self._ask(address)
        finally:
            # Even if cancelled: an answer that comes late must not be taken for the next one.
            if answer is None or self._has_ended:
                self.close()
        if answer is None:
            self._paused_until = monotonic() + PAUSE_SECONDS
        return answer

    async def _ask(self, address: Address) -> dict[str, Any] | None:
        if self._streams is None or self._streams[1].is_closing() or address != self._address:
            self.close()
            self._address, self._streams = address, await _connect(address)
        reader, writer = self._streams
        self._number = number = (self._number + 1) % MAX_NUMBER
        writer.write(HEADER.pack(HEADER.size + len(HELLO), number, 0, OP_MSG, 0, 0) + HELLO)
        length, _, answered, *_ = HEADER.unpack(await reader.readexactly(HEADER.size))
        body = await reader.readexactly(length - HEADER.size)
        return bson.decode(body) if answered == number else None

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
        self._streams = None

    def end(self) -> None:
        """Close the connection for good: a request that is still under way does not leave one open."""
        self._has_ended = True
        self.close()


async def _connect(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = address
    if port is None:
        return await asyncio.open_unix_connection(host)
    return await asyncio.open_connection(host, port)
