"""Warming at start: counts the default event list before a request has to wait for it."""

from __future__ import annotations

from schemas.caller import Caller
from schemas.event import EVENT
from schemas.kind import load
from service.store.depths import FAR
from service.store.lists.pages import find_page
from service.store.records.reading import Records


async def foresee(records: Records, caller: Caller) -> None:
    """Count the list of upcoming events, and set page anchors up to its end."""
    query = load(EVENT.query_schema, {}, records.site)
    total = (await find_page(records, EVENT, query, caller)).total
    if last := max(0, total - FAR) // query["per_page"]:
        await find_page(records, EVENT, query | {"page": last}, caller)
