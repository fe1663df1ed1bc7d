"""Responses of unknown length, which are sent while they are made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from handlers.responses.prepared import DEFAULT_HEADERS

STALL_SECONDS = 60
"""A client that reads nothing for this long is disconnected."""


class StreamedResponse(web.StreamResponse):
    """Sends chunks as they come. It begins after all middlewares, which add headers to it. An endless one is
    not compressed, so that nothing is held back, and ends when the service begins to shut down."""

    def __init__(
        self, chunks: AsyncGenerator[bytes], headers: Mapping[str, str], *, is_endless: bool = False
    ) -> None:
        super().__init__(headers={**DEFAULT_HEADERS, **headers})
        self.is_endless = is_endless
        self._chunks = chunks
        self._has_body = True
        self._is_stopped = False
        self._writing: asyncio.Timeout | None = None

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        self._has_body = request.method != "HEAD"
        return await super().prepare(request)

    def stop(self) -> None:
        """End the response, complete for the client, and close the generator of its chunks."""
        self._is_stopped = True
        if self._writing:
            self._writing.reschedule(asyncio.get_running_loop().time())

    async def write_eof(self, data: bytes = b"") -> None:
        if self._has_body and not self._is_stopped:
            try:
                async with asyncio.timeout(None) as self._writing, aclosing(self._chunks) as chunks:
                    await self._write_all(chunks)
            except TimeoutError:
                if not self._is_stopped:  # the client has stalled
                    raise
            finally:
                self._writing = None
        await super().write_eof(data)

    async def _write_all(self, chunks: AsyncGenerator[bytes]) -> None:
        async for chunk in chunks:
            async with asyncio.timeout(STALL_SECONDS):
                await self.write(chunk)
