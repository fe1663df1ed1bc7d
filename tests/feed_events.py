"""Random events, and what programs that read feeds must show of them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from tests.conftest import Api
from tests.random_records import Bodies

SINCE = {"start_date": "2027-01-01"}
"""The query of lists and feeds that contain all of them."""


class Shown(NamedTuple):
    """An event as a program shows it."""

    title: str
    is_all_day: bool
    start: str
    end: str
    """Times in UTC, or the first and the last day."""


async def random_events(api: Api, seed: int, number: int) -> list[Any]:
    """Create events, and return all of them as the JSON list shows them."""
    bodies = Bodies(seed)
    for _ in range(number):
        await api.made("events", **bodies.public_event())
    status, page = await api.get("/events", per_page="100", **SINCE)
    assert (status, page["total"]) == (200, number), page
    rows: list[Any] = page["events"]
    return rows


def expected(rows: list[Any]) -> dict[str, Shown]:
    """What is shown of the events of a JSON list, by their addresses."""
    return {row["url"]: expected_one(row) for row in rows}


def expected_one(row: Any) -> Shown:
    title = row["title"]
    if row["all_day"]:
        return Shown(title, True, row["start_date"][:10], row["end_date"][:10])
    return Shown(title, False, row["utc_start_date"], row["utc_end_date"])


def days(title: str, start: str, end: str) -> Shown:
    """An event of whole days, whose end is the day after the last one in iCalendar."""
    return Shown(title, True, start, str((datetime.fromisoformat(end) - timedelta(days=1)).date()))
