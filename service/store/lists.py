"""Lists: a page of the records that a caller may see and a query asks for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from schemas.caller import Caller
from schemas.errors import PageNotFound
from schemas.event import EVENT
from schemas.kind import Document, Kind
from service.store.asked import Asked
from service.store.client import Collection
from service.store.event_lists import event_list
from service.store.marks import START, Marks
from service.store.post_lists import post_list
from service.store.records import GLANCE, Records
from service.store.term_lists import term_list

Asking = Callable[[Records, Kind, Mapping[str, Any], Caller], Awaitable[Asked]]
FAR = 4000
"""Records that one query should skip at most."""
STRETCH = 100
"""Records among which a mark is set: not all of them have the same value."""


def asking(kind: Kind) -> Asking:
    """What turns a query for this kind into conditions and an order."""
    if kind is EVENT:
        return event_list
    return post_list if kind.is_post else term_list


@dataclass(frozen=True)
class Page:
    """One page of a list, and how long the list is."""

    glances: list[Document]
    total: int


async def find_page(records: Records, kind: Kind, query: Mapping[str, Any], caller: Caller) -> Page:
    asked = await asking(kind)(records, kind, query, caller)
    collection = records.database[kind.plural]
    total, marks = await count(records, kind, asked)
    skip, limit = (query["page"] - 1) * query["per_page"], query["per_page"]
    if skip >= total:
        if query["page"] > 1:
            raise PageNotFound(kind=kind.name)
        return Page([], 0)
    if query.get("orderby") == "include" and query.get("include"):
        rows = await collection.find(asked.filter, GLANCE).to_list(None)
        rows.sort(key=lambda row: query["include"].index(row["_id"]), reverse=query.get("order") == "desc")
        return Page(rows[skip : skip + limit], total)
    if marks and skip > FAR:
        await approach(records, kind, asked, marks, skip)
    return Page(await stretch(collection, asked, marks, skip, limit), total)


async def count(records: Records, kind: Kind, asked: Asked) -> tuple[int, Marks | None]:
    """The length of a list; where it is carried along, with the marks that lead into its depth."""
    if kind is EVENT and records.generation.is_told:
        tally = await records.totals.of(asked.conditions)
        return tally.total, tally.marks_of(asked.sort)
    return await records.database[kind.plural].count_documents(asked.filter), None


async def approach(records: Records, kind: Kind, asked: Asked, marks: Marks, rank: int) -> None:
    """Sets marks on the way to a rank, until the last is near enough."""
    while (last := marks.before(rank)).rank < rank - FAR:
        now, first = records.news.number, last.rank + FAR
        order = {asked.sort[0][0]: 1}  # from the index alone
        rows = await stretch(records.database[kind.plural], asked, marks, first, STRETCH, order)
        await records.news.catch_up()
        if records.news.number == now:  # else the ranks may have moved under our feet
            marks.learn(first, [row[asked.sort[0][0]] for row in rows])
        if marks.before(rank) == last:
            return


async def stretch(
    collection: Collection,
    asked: Asked,
    marks: Marks | None,
    rank: int,
    limit: int,
    shown: Mapping[str, int] = GLANCE,
) -> list[Document]:
    """Records of a list from a rank on, counted from the last mark before it."""
    mark = marks.before(rank) if marks else START
    conditions = [*asked.conditions, *(marks.condition(mark) if marks else ())]
    found = collection.find({"$and": conditions} if conditions else {}, shown)
    found = found.sort(asked.sort).skip(rank - mark.rank).limit(limit)
    return await (found.hint(asked.hint) if asked.hint else found).to_list(None)
