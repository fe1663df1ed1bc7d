"""Groups the items of a source into batches."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from itertools import groupby

from service.imports.item import Entry, Item, SourceError

MAX_BATCH_ITEMS = 400


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


def slices(items: Sequence[Item]) -> Iterator[list[Item]]:
    """Batches of items of the same kind."""
    for _, group in groupby(items, key=lambda item: item.kind.name):
        same = list(group)
        yield from (same[at : at + MAX_BATCH_ITEMS] for at in range(0, len(same), MAX_BATCH_ITEMS))
