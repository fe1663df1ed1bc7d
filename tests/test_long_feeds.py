"""Long feeds, which begin before all their records are known."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import icalendar
import pytest

from handlers import feeds
from service.store.lists import scans
from tests.conftest import Api

NUMBER = 50


@pytest.fixture
async def events(api: Api, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Events on different days. A few of them are a long feed, and it is read in small batches."""
    monkeypatch.setattr(feeds, "MAX_SHORT_FEED", 10)
    monkeypatch.setattr(scans, "READ_AHEAD", 7)
    return [await api.event(f"Event {number}", **on_day(number)) for number in range(NUMBER)]


def on_day(number: int) -> dict[str, str]:
    date = f"2027-{1 + number // 28:02}-{1 + number % 28:02}"
    return {"start_date": f"{date} 10:00", "end_date": f"{date} 11:00"}


async def titles(api: Api) -> list[str]:
    assert (await api.get("/events.csv"))[0] == 200
    return [row["Event Name"] for row in csv.DictReader(io.StringIO(api.text.removeprefix("\ufeff")))]


def after_fetches(
    api: Api, number: int, work: Callable[[], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Do some work when a feed has read this many batches of records."""
    find_many, calls = api.store.find_many, Counter[str]()

    async def counted(kind: Any, ids: Any) -> Any:
        calls["find_many"] += 1
        if calls["find_many"] == number:
            await work()
        return await find_many(kind, ids)

    monkeypatch.setattr(api.store, "find_many", counted)


async def test_a_long_feed_is_the_list_in_its_order(api: Api, events: list[Any]) -> None:
    assert await titles(api) == [event["title"] for event in events]
    await api.get("/events.csv", orderby="title", order="desc")
    assert api.text.index("Event 9") < api.text.index("Event 10")


@pytest.mark.parametrize("longest", [10, 100])
async def test_an_event_whose_id_is_not_a_number_is_left_out(
    api: Api, events: list[Any], monkeypatch: pytest.MonkeyPatch, longest: int
) -> None:
    monkeypatch.setattr(feeds, "MAX_SHORT_FEED", longest)
    stored = await api.store.database["events"].find_one({"_id": events[3]["id"]}) or {}
    await api.store.database["events"].insert_one(stored | {"_id": "by hand", "slug": "by-hand"})
    assert await titles(api) == [event["title"] for event in events]


async def test_nothing_is_lost_or_repeated_while_others_write(
    api: Api, events: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def write() -> None:
        await api.patch(f"/events/{events[45]['id']}", on_day(0))  # from what follows to what was sent
        await api.patch(f"/events/{events[0]['id']}", on_day(49))  # and the other way
        await api.patch(f"/events/{events[46]['id']}", {"title": "Renamed"})
        await api.delete(f"/events/{events[47]['id']}")
        await api.event("New", **on_day(48))

    after_fetches(api, 2, write, monkeypatch)
    wanted = {event["title"] for event in events} - {"Event 46", "Event 47"} | {"Renamed"}
    assert Counter(await titles(api)) == Counter(wanted)


async def test_an_event_that_is_cancelled_meanwhile_is_in_the_calendar_once(
    api: Api, events: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A calendar is made of two lists, which are read one after the other."""
    original, calls = scans._ids, Counter[str]()
    modified = api.store.site.now()

    def read(rows: Any) -> Any:
        calls["read"] += 1
        if calls["read"] == 4:
            change = {"status": "trash", "trashed_from": "publish", "modified_utc": modified}
            api.store.database.delegate["events"].update_one({"_id": events[3]["id"]}, {"$set": change})
        return original(rows)

    monkeypatch.setattr(scans, "_ids", read)
    assert (await api.get("/events.ics"))[0] == 200
    found = Counter(str(event["uid"]) for event in icalendar.Calendar.from_ical(api.text).events)
    assert (len(found), max(found.values())) == (NUMBER, 1)
    assert calls["read"] > 4


async def test_an_unchanged_long_feed_is_not_even_looked_for(
    api: Api, events: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    await titles(api)
    known = {"If-None-Match": api.headers["ETag"]}

    def refuse(*_: Any) -> Any:
        raise AssertionError("looked for")

    with monkeypatch.context() as patch:
        patch.setattr(api.store, "scan", refuse)
        assert (await api.send("GET", "/events.csv", headers=known))[0] == 304
    for path in ("/events.ics", "/events.csv?order=desc"):
        assert (await api.send("GET", path, headers=known))[0] == 200
    await api.made("tags", name="Any other record")
    assert (await api.send("GET", "/events.csv", headers=known))[0] == 200
    any_version = {"If-None-Match": "*"}
    assert (await api.send("GET", "/events.csv", headers=any_version))[0] == 304
    assert (await api.send("GET", "/events.csv?categories=none", headers=any_version))[0] == 400


async def test_a_failure_behind_the_beginning_is_seen(
    api: Api, events: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    original, calls = scans._ids, Counter[str]()

    def read(rows: Any) -> Any:
        calls["read"] += 1
        if calls["read"] == 4:
            raise ConnectionResetError
        return original(rows)

    monkeypatch.setattr(scans, "_ids", read)
    with pytest.raises(Exception, match=r"payload|Connection|Response"):
        await titles(api)


async def test_times_far_from_the_first_event_of_a_zone_are_right(api: Api, events: list[Any]) -> None:
    for year in (2027, 2030, 2060):
        times = {"start_date": f"{year}-07-01 10:00", "end_date": f"{year}-12-01 10:00"}
        await api.event(f"In {year}", **times, timezone="Europe/Berlin")
    await api.get("/events.ics", starts_after="2026-01-01")
    found = {
        str(event["summary"]): event["dtstart"].to_ical()
        for event in icalendar.Calendar.from_ical(api.text).events
    }
    assert found["In 2030"] == b"20300701T100000"
    assert found["In 2060"] == b"20600701T080000Z"
    assert api.text.count("BEGIN:VTIMEZONE") == 1
