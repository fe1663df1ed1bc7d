"""Responses of unknown length, which are sent while they are made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from handlers.prepared_response import DEFAULT_HEADERS

STALL_SECONDS = 60
"""A client that reads nothing for this long is disconnected."""


class StreamedResponse(web.StreamResponse):
    """Sends chunks as they come. It begins after all middlewares, which add headers to it."""

    def __init__(
        self, chunks: AsyncIterator[bytes], headers: Mapping[str, str], *, is_compressible: bool = True
    ) -> None:
        super().__init__(headers={**DEFAULT_HEADERS, **headers})
        self._chunks, self.is_compressible = chunks, is_compressible
        self._has_body = True

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        self._has_body = request.method != "HEAD"
        return await super().prepare(request)

    async def write_eof(self, data: bytes = b"") -> None:
        if self._has_body:
            async for chunk in self._chunks:
                async with asyncio.timeout(STALL_SECONDS):
                    await self.write(chunk)
        await super().write_eof(data)
