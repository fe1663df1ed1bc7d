"""List pages: the records that match a query and that the caller may see."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from schemas.caller import Caller
from schemas.errors import PageNotFound, Problems
from schemas.event import EVENT
from schemas.kind import Document, Kind
from service.store.depths import Depths
from service.store.lists.event_filters import event_list
from service.store.lists.post_filters import post_list
from service.store.lists.query import ListQuery
from service.store.lists.term_filters import term_list
from service.store.records.reading import HEAD_FIELDS, NO_PROBLEMS, Records
from service.store.tally import Tally

Asking = Callable[[Records, Kind, Mapping[str, Any], Caller, Problems], Awaitable[ListQuery]]


def asking(kind: Kind) -> Asking:
    """The function that turns query parameters for this kind into a list query."""
    if kind is EVENT:
        return event_list
    return post_list if kind.is_post else term_list


@dataclass(frozen=True)
class Page:
    """One page of a list, and the total of the list."""

    heads: list[Document]
    total: int


async def find_page(
    records: Records, kind: Kind, query: Mapping[str, Any], caller: Caller, problems: Problems = NO_PROBLEMS
) -> Page:
    """Find a page; raises InvalidFields with all invalid parameters, including those in `problems`."""
    asked = await asking(kind)(records, kind, query, caller, Problems(problems))
    collection = records.database[kind.plural]
    total, tally = await count(records, kind, asked)
    skip, limit = (query["page"] - 1) * query["per_page"], query["per_page"]
    if skip >= total:
        if query["page"] > 1:
            raise PageNotFound(kind=kind.name)
        return Page([], 0)
    if query.get("orderby") == "include" and query.get("include"):
        rows = await collection.find(asked.filter, HEAD_FIELDS).to_list(None)
        rows.sort(key=lambda row: query["include"].index(row["_id"]), reverse=query.get("order") == "desc")
        return Page(rows[skip : skip + limit], total)
    if tally is None:
        return Page(await asked.rows(collection, skip, limit, HEAD_FIELDS), total)
    return Page(
        await Depths(records.database, asked, tally, records.feed).rows(skip, limit, HEAD_FIELDS), total
    )


async def count(records: Records, kind: Kind, asked: ListQuery) -> tuple[int, Tally | None]:
    """The total of a list; for lists of events with the running total that it comes from."""
    if kind is EVENT and records.clock.is_told:
        tally = await records.totals.of(asked.conditions)
        return tally.total, tally
    return await records.database[kind.plural].count_documents(asked.filter), None
