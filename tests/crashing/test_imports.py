"""An import dies at every point; started again, it stores every line exactly once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from tests.checker import differences
from tests.crashing.driver import Driver, wrong_in_log
from tests.crashing.dying import Point
from tests.test_import_calendars import calendar

pytestmark = pytest.mark.slow

LINES = 25


def ndjson(number: int) -> str:
    """Lines whose venues and tags are created with the first that names them."""
    rows = [
        {
            "title": f"Event {number}.{at}",
            "start_date": "2027-06-01 10:00:00",
            "end_date": "2027-06-01 12:00:00",
            "venue": {"venue": f"Hall {number}.{at % 3}"},
            "tags": [f"tag {number}.{at % 2}"],
        }
        for at in range(LINES)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def icalendar(number: int, changed: str = "") -> str:
    """A series that gets shorter, and events that get another title; their venues are the same."""
    length = 4 if changed else 6
    series = f"UID:s{number}\nSUMMARY:Event {number}.s\nDTSTART:20270101T100000Z\n"
    single = (
        f"UID:{number}.{at}\nSUMMARY:Event {number}.{at}{changed}\nDTSTART:202702{at + 10}T100000Z\n"
        f"LOCATION:Hall {number}.{at % 2}\n"
        for at in range(4)
    )
    return calendar(series + f"RRULE:FREQ=DAILY;COUNT={length}\n", *single)


Expected = Callable[[int], Counter[tuple[str, str]]]


def all_lines(number: int) -> Counter[tuple[str, str]]:
    return Counter((f"Event {number}.{at}", "publish") for at in range(LINES))


def changed_calendar(number: int) -> Counter[tuple[str, str]]:
    series = [(f"Event {number}.s", "publish")] * 4 + [(f"Event {number}.s", "trash")] * 2
    return Counter(series + [(f"Event {number}.{at} new", "publish") for at in range(4)])


FORMATS: list[tuple[str, Callable[[int], list[str]], Expected, int, set[str]]] = [
    ("ndjson", lambda at: [ndjson(at)], all_lines, 3, {"insert venues", "insert tags", "insert events"}),
    (
        "ics",
        lambda at: [icalendar(at), icalendar(at, " new")],
        changed_calendar,
        2,
        {"insert venues", "insert events", "update events"},
    ),
]


@pytest.mark.parametrize(
    ("suffix", "texts", "expected", "venues", "commands"), FORMATS, ids=[one[0] for one in FORMATS]
)
async def test_import(
    driver: Driver,
    suffix: str,
    texts: Callable[[int], list[str]],
    expected: Expected,
    venues: int,
    commands: set[str],
) -> None:
    """Every version of a file is imported with a death, and then without."""
    files = count(1)
    for points in driver.series(step=3, waits=True):
        for point, number in zip(points, files, strict=False):
            path, deaths = driver.victims.directory / f"{number}.{suffix}", 0
            for text in texts(number):
                path.write_text(text)
                deaths += await imports(driver, path, point)
                assert not await imports(driver, path)
            await stored_once(driver, number, expected(number), venues)
            if not deaths:
                break
    assert driver.victims.seen.total() >= 4
    assert driver.victims.seen.keys() >= commands or not driver.is_complete


async def imports(driver: Driver, path: Path, point: Point | None = None) -> bool:
    """Import; return whether the process has died."""
    words = ("import", str(path), "--since", "2026-01-01", "--until", "2029-01-01")
    async with driver.victims.start(*words, point=point) as victim:
        await victim.ends()
        if victim.has_died:
            await driver.victims.note_death(victim)
        return victim.has_died


async def stored_once(driver: Driver, number: int, events: Counter[tuple[str, str]], venues: int) -> None:
    database = driver.store.database
    await driver.store.maintain()
    wrong = await differences(driver.store) + await wrong_in_log(driver.store)
    assert not wrong, driver.victims.last
    named = {"$regex": f"^Event {number}[.]"}
    rows = database["events"].find({"title": named}, {"title": 1, "status": 1})
    assert Counter([(row["title"], row["status"]) async for row in rows]) == events
    assert await database["venues"].count_documents({"venue": {"$regex": f"^Hall {number}[.]"}}) == venues
