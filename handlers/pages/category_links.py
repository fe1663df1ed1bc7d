"""The place of a category in the tree: links to the one above it and to those below."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handlers.pages.calendar.events import EventFinder
from handlers.pages.context import PageContext
from schemas.kind import Document, Kind, load

MAX_LINKS = 100


async def category_links(
    finder: EventFinder, page: PageContext, kind: Kind, shown: Mapping[str, Any]
) -> Document:
    """The records above and below a record; none for kinds without a hierarchy."""
    if "parent" not in shown:
        return {"above": [], "below": []}
    below = await _found(finder, page, kind, {"parent": str(shown["id"])})
    wanted = {"include": str(shown["parent"]), "hide_empty": "0"}
    return {"above": await _found(finder, page, kind, wanted) if shown["parent"] else [], "below": below}


async def _found(
    finder: EventFinder, page: PageContext, kind: Kind, wanted: Mapping[str, str]
) -> list[Document]:
    query = load(kind.query_schema, wanted, page.site) | {"per_page": MAX_LINKS}
    return (await finder.records(kind, page, query))[0]
