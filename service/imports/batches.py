"""Groups the items of a source into batches."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

from service.imports.item import Entry, SourceError

MAX_BATCH_ITEMS = 200


async def batches(items: AsyncIterator[Entry]) -> AsyncGenerator[list[Entry]]:
    """Batches of consecutive items of the same kind. If the source fails, the items before are not lost."""
    batch: list[Entry] = []
    try:
        async for item in items:
            if batch and (item.kind is not batch[-1].kind or len(batch) >= MAX_BATCH_ITEMS):
                yield batch
                batch = []
            batch.append(item)
    except SourceError:
        if batch:
            yield batch
        raise
    if batch:
        yield batch
