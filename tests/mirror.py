"""A mirror: it begins with the lists, and then learns of everything from the change feed alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

KINDS = ("events", "venues", "organizers", "categories", "tags")
ANY_DATE = "start_date=1900-01-01&end_date=2200-01-01"
GONE = ("trashed", "removed", "left")
Get = Callable[[str], Awaitable[Any]]
"""Path -> body of the response."""
Records = dict[tuple[str, int], Any]


class Mirror:
    """The records of some kinds, of which those of events match a filter such as `categories=3`."""

    def __init__(self, kinds: tuple[str, ...] = KINDS, filter: str = "", limit: int = 7) -> None:
        self.kinds, self.filter, self.limit = kinds, filter, limit
        self.records: Records = {}
        self.token = ""
        self.told: list[tuple[str, str, int]] = []
        """(action, kind, id) of every change."""

    async def begin(self, get: Get) -> None:
        self.token = (await get("/changes"))["next"]
        self.records = await self.listed(get)

    async def follow(self, get: Get) -> None:
        """Apply all changes since the last call."""
        has_more = True
        while has_more:
            kinds = ",".join(self.kinds)
            page = await get(f"/changes?since={self.token}&kinds={kinds}&limit={self.limit}&{self.filter}")
            for change in page["changes"]:
                self.apply(change)
            self.token, has_more = page["next"], page["has_more"]

    def apply(self, change: Any) -> None:
        key = (change["kind"], change["id"])
        self.told.append((change["action"], *key))
        assert (change["record"] is None) == (change["action"] in GONE), change
        if change["record"]:
            self.records[key] = without_counts(change["record"])
        else:
            self.records.pop(key, None)

    async def listed(self, get: Get) -> Records:
        """What the mirror must have: everything that the lists show now."""
        return {
            (plural, record["id"]): without_counts(record)
            for plural in self.kinds
            for record in await all_of(get, plural, self.filter)
        }

    async def differences(self, get: Get) -> dict[tuple[str, int], tuple[Any, Any]]:
        """Where the lists differ from the mirror: (in the lists, in the mirror)."""
        now, mine = await self.listed(get), self.records
        keys = now.keys() | mine.keys()
        return {key: (now.get(key), mine.get(key)) for key in keys if now.get(key) != mine.get(key)}


async def all_of(get: Get, plural: str, filter: str) -> list[Any]:
    query = f"{ANY_DATE}&{filter}" if plural == "events" else "hide_empty=false"
    found: list[Any] = []
    page, pages = 1, 1
    while page <= pages:
        body = await get(f"/{plural}?{query}&per_page=50&page={page}")
        found += body[plural]
        page, pages = page + 1, body["total_pages"]
    return found


def without_counts(value: Any) -> Any:
    """A record without the numbers of events, which change without being told."""
    if isinstance(value, dict):
        return {name: without_counts(one) for name, one in value.items() if name != "count"}
    return [without_counts(one) for one in value] if isinstance(value, list) else value
