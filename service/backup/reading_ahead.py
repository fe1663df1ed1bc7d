"""Reads ahead in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from typing import TypeVar

Item = TypeVar("Item")


async def read_ahead(items: Iterator[Item]) -> AsyncGenerator[Item]:
    """The items of an iterator that blocks. While one is used, the next one is read in a thread."""
    reading = asyncio.create_task(asyncio.to_thread(next, items, None))
    try:
        while (item := await asyncio.shield(reading)) is not None:
            reading = asyncio.create_task(asyncio.to_thread(next, items, None))
            yield item
    finally:
        await asyncio.gather(reading, return_exceptions=True)  # a thread cannot be cancelled
