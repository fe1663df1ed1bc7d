"""Slugs: unique in their kind; a taken one gets -2, -3 and so on."""

from __future__ import annotations

from schemas.slugs import numbered
from service.store.client import Collection


async def free_slug(
    collection: Collection,
    wished: str,
    own: int | None = None,
    taken: frozenset[str] | set[str] = frozenset(),
) -> str:
    """The wished slug, or its first free numbered form. Another process may still take it first:
    the unique index says so, and the writer asks again."""

    async def is_taken(number: int) -> bool:
        if numbered(wished, number) in taken:
            return True
        found = await collection.find_one({"slug": numbered(wished, number)}, {"_id": 1})
        return found is not None and found["_id"] != own

    if not await is_taken(1):
        return wished
    # Doubling, then halving, so that the thousandth of a title costs twenty look-ups and not a thousand.
    low, high = 1, 2
    while await is_taken(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if await is_taken(middle) else (low, middle)
    return numbered(wished, high)
