"""Totals and deep pages of lists: exact after every write by any process, for every filter."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from schemas import EVENT
from schemas.caller import EVERYBODY, PUBLIC, Caller, Role
from schemas.kind import load
from schemas.values.zones import parse_zone
from service.changes.list_fields import LIST_FIELDS, SEARCHED
from service.mongo.conditions import fields_of, matches
from service.store import Store
from service.store.lists import page_finder, totals
from service.store.lists.event_filters import DATES
from service.store.lists.histograms import Histogram, Window
from service.store.lists.page_finder import PageFinder
from service.store.lists.pages import Lists
from service.store.lists.query import ListQuery, can_evaluate
from service.store.lists.resolver import FilterResolver
from service.store.lists.totals import NoHistogram, Totals
from tests.conftest import Api

CALLERS = (PUBLIC, EVERYBODY, Caller(7, Role.AUTHOR), Caller(role=Role.EDITOR, bypasses_passwords=True))


def lists(links: dict[str, Any]) -> list[dict[str, Any]]:
    """Queries of every filter that lists of events have."""
    return [
        {},
        {"venue": str(links["venue"])},
        {"organizer": str(links["organizer"])},
        {"categories": str(links["category"])},
        {"tags": str(links["tag"])},
        {"featured": "1"},
        {"featured": "0"},
        {"ticketed": "1"},
        {"start_date": "2027-03-01", "end_date": "2027-09-01"},
        {"start_date": "2027-03-01 12:00", "end_date": "2027-09-01 12:00", "strict_dates": "1"},
        {"starts_after": "2027-06-01"},
        {"starts_before": "2027-06-01"},
        {"ends_after": "2027-06-01"},
        {"ends_before": "2027-06-01"},
        {"geoloc": "1"},
        {"geoloc": "0"},
        {"geoloc_lat": "50", "geoloc_lng": "8", "geoloc_radius": "50"},
        {"search": "zebra"},
        {"search": '"zebra stripes"'},
        {"search": "ebr", "categories": str(links["category"])},
        {"venue": str(links["venue"]), "featured": "1", "starts_after": "2027-02-01"},
    ]


async def linked(api: Api) -> dict[str, int]:
    venue = await api.made("venues", venue="Hall", geo_lat=50, geo_lng=8)
    organizer = await api.made("organizers", organizer="Club")
    category = await api.made("categories", name="Music")
    tag = await api.made("tags", name="loud")
    return {
        "venue": venue["id"],
        "organizer": organizer["id"],
        "category": category["id"],
        "tag": tag["id"],
    }


def anything(chance: random.Random, links: dict[str, Any]) -> dict[str, Any]:
    """Fields of an event, each of which some list looks at."""
    start = f"2027-{chance.randint(1, 12):02}-{chance.randint(1, 28):02} 12:00"
    return {
        "title": chance.choice(["Zebra stripes", "zebra", "Lion", "Stripes of a zebra"]),
        "start_date": start,
        "end_date": start,
        "status": chance.choice(["publish", "publish", "publish", "draft"]),
        "featured": chance.random() < 0.3,
        "ticketed": chance.random() < 0.3,
        "hide_from_listings": chance.random() < 0.1,
        "venue": [links["venue"]] if chance.random() < 0.5 else [],
        "organizer": [links["organizer"]] if chance.random() < 0.5 else [],
        "categories": [links["category"]] if chance.random() < 0.5 else [],
        "tags": [links["tag"]] if chance.random() < 0.5 else [],
    }


async def counted(store: Store, query: dict[str, Any], caller: Caller) -> int:
    asked = await store.lists.translate(EVENT, load(EVENT.query_schema, query, store.site), caller)
    return int(await store.database["events"].count_documents(asked.filter))


async def wrong_totals(api: Api, links: dict[str, int]) -> list[Any]:
    wrong = []
    for query in lists(links):
        status, page = await api.get("/events", **query)
        assert status == 200, page
        right = await counted(api.store, query, EVERYBODY)
        if page["total"] != right:
            wrong.append((query, page["total"], right))
    return wrong


@pytest.fixture
def by_histogram(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Every list is long. The totals that histograms have given are noted here."""
    monkeypatch.setattr(totals, "MAX_COUNTED", 0)
    monkeypatch.setattr(totals, "MAX_COUNTED_FIRST", 0)
    given: list[int] = []
    total = Histogram.total

    def noted(histogram: Histogram, window: Window) -> int:
        given.append(total(histogram, window))
        return given[-1]

    monkeypatch.setattr(Histogram, "total", noted)
    return given


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
async def test_histograms_follow_every_write_of_either_process(
    pair: tuple[Api, Api], seed: int, by_histogram: list[int]
) -> None:
    await test_totals_follow_every_write_of_either_process(pair, seed)
    assert len(by_histogram) > 100
    assert any(by_histogram)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Pacific/Apia", "America/St_Johns"])
async def test_any_range_of_time_is_counted(api: Api, zone: str, by_histogram: list[int]) -> None:
    chance, store = random.Random(zone), api.store
    for _ in range(80):
        start = datetime(2027, 3, 20, *chance.choice([(0, 0), (23, 59, 59), (12, 30)])) + timedelta(
            chance.randrange(16)
        )
        end = start + chance.choice([timedelta(), timedelta(hours=3), timedelta(1), timedelta(5)])
        await api.made("events", title="Event", timezone="UTC", start_date=str(start), end_date=str(end))
    site = replace(store.site, zone=parse_zone(zone))
    resolver = FilterResolver(store.database, site, store.feed, store.vocabulary, store.log)
    lists = Lists(store.database, store.feed, resolver)
    for _ in range(300):
        names = chance.sample(sorted(DATES), chance.randint(1, 4))
        query: dict[str, Any] = {name: str(some_moment(chance)) for name in names}
        query |= {"strict_dates": "1"} if chance.random() < 0.5 else {}
        values = load(EVENT.query_schema, query, site)
        right = await store.database["events"].count_documents(
            (await lists.translate(EVENT, values, PUBLIC)).filter
        )
        assert (await lists.page(EVENT, values, PUBLIC)).total == right, query
    assert len(by_histogram) > 100


def some_moment(chance: random.Random) -> datetime:
    return datetime(2027, 3, 15) + timedelta(chance.randrange(30), chance.choice([0, 1, 43_200, 86_399]))


@pytest.mark.parametrize("limit", ["MAX_WAIT_SECONDS", "MAX_PAIRS", "MAX_FILTER_BYTES"])
async def test_a_list_whose_histogram_is_not_ready_is_counted_by_the_database(
    api: Api, by_histogram: list[int], monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(f"service.store.lists.totals.{limit}", 0)
    for day in ("2027-06-01", "2027-06-02", "2027-06-03"):
        await api.event("Event", start_date=day, end_date=day)
    for day in (2, 3):
        found = await api.get("/events", start_date="2027-06-01", end_date=f"2027-06-0{day}")
        assert (found[0], found[1]["total"]) == (200, day)
    assert not by_histogram or limit == "MAX_WAIT_SECONDS"
    if limit == "MAX_PAIRS":
        with pytest.raises(NoHistogram):
            await api.store.lists.totals._build(ListQuery("events", [{"hide_from_listings": False}], []))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
async def test_totals_follow_every_write_of_either_process(pair: tuple[Api, Api], seed: int) -> None:
    chance = random.Random(seed)
    links = await linked(pair[0])
    made: list[int] = []
    for _ in range(25):
        writer = chance.choice(pair)
        done = chance.random()
        if done < 0.5 or not made:
            made.append((await writer.made("events", **anything(chance, links)))["id"])
        elif done < 0.85:
            fields = anything(chance, links)
            dates = {name: fields.pop(name) for name in ("start_date", "end_date")}
            some = {name: fields[name] for name in chance.sample(sorted(fields), 2)}
            some |= dates if chance.random() < 0.3 else {}
            assert (await writer.patch(f"/events/{chance.choice(made)}", some))[0] == 200
        elif done < 0.95:
            gone = made.pop(chance.randrange(len(made)))
            assert (await writer.delete(f"/events/{gone}"))[0] == 200
        else:
            change = {
                "status": chance.choice(["draft", "publish"]),
                "geo_lat": chance.choice([50, 70]),
                "geo_lng": 8,
            }
            assert (await writer.patch(f"/venues/{links['venue']}", change))[0] == 200
        for reader in pair:
            assert await wrong_totals(reader, links) == []


@pytest.mark.parametrize("who", [0, 1])
async def test_a_change_of_either_process_is_applied_without_counting_again(
    pair: tuple[Api, Api], who: int, by_histogram: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = pair[0], pair[who]
    links = await linked(writer)
    event = await writer.event("Lion", venue=links["venue"])

    async def total() -> Any:
        query = {"venue": str(links["venue"]), "status": "publish"}
        return (await reader.get("/events", **query))[1]["total"]

    def refuse(*_: Any) -> None:
        raise AssertionError("counted again")

    assert await total() == 1
    monkeypatch.setattr(Totals, "_build", refuse)
    monkeypatch.setattr(ListQuery, "counted", refuse)
    other = await writer.event("Lioness", venue=links["venue"])
    assert await total() == 2
    changes: list[tuple[dict[str, Any], int]] = [
        ({"start_date": "2019-01-01"}, 1),
        ({"start_date": "2027-01-01", "end_date": "2027-01-02"}, 2),
        ({"status": "draft"}, 1),
        ({"status": "draft", "title": "Cub"}, 1),
        ({"status": "publish"}, 2),
        ({"hide_from_listings": True}, 1),
        ({"hide_from_listings": False, "venue": []}, 1),
        ({"venue": [links["venue"]]}, 2),
    ]
    for change, right in changes:
        assert (await writer.patch(f"/events/{other['id']}", change))[0] == 200
        assert await total() == right, change
    await writer.delete(f"/events/{event['id']}")
    assert await total() == 1


async def test_a_stream_that_fell_behind_or_broke_is_begun_anew(
    api: Api, by_histogram: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api.store.feed, "_events", type(api.store.feed._events)(maxlen=3))
    await api.event("First")
    assert (await api.get("/events"))[1]["total"] == 1
    for number in range(8):
        await api.event(f"Event {number}")
    assert (await api.get("/events"))[1]["total"] == 9
    await api.store.feed.close()
    await api.event("Last")
    assert (await api.get("/events"))[1]["total"] == 10
    await api.store.database["events"].delete_one({"title": "Last"})  # by somebody else
    assert (await api.get("/events"))[1]["total"] == 9
    assert by_histogram == [1, 9, 10, 9]


async def test_many_ask_while_many_write(pair: tuple[Api, Api]) -> None:
    links = await linked(pair[0])

    async def write(api: Api, number: int) -> None:
        for at in range(12):
            event = await api.event(f"Event {number} {at}", categories=[links["category"]])
            # Never more than a page of them: others come between the count and the page.
            seen = (await api.get("/events", categories=str(links["category"]), per_page="100"))[1]
            assert event["id"] in [one["id"] for one in seen["events"]]
            if at % 3 == 0:
                await api.patch(f"/events/{event['id']}", {"categories": []})

    await asyncio.gather(*(write(api, number) for number in range(5) for api in pair))
    for api in pair:
        assert await wrong_totals(api, links) == []


@pytest.fixture
def shallow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists that are long and deep after a few records."""
    monkeypatch.setattr(totals, "MAX_COUNTED", 5)
    monkeypatch.setattr(totals, "MAX_COUNTED_FIRST", 5)
    monkeypatch.setattr(page_finder, "MAX_SKIPPED", 6)


@pytest.mark.usefixtures("shallow")
@pytest.mark.parametrize("days", [1, 28])
async def test_deep_pages_are_the_same_however_they_are_reached(api: Api, days: int) -> None:
    chance = random.Random(5)

    async def make(number: int) -> int:
        day = f"2027-06-{chance.randint(1, days):02}"
        return int((await api.event(f"Event {number % 7}", start_date=day, end_date=day))["id"])

    made = [await make(number) for number in range(60)]
    for orderby in ("start_date", "end_date", "title", "id", "modified"):
        for order in ("asc", "desc"):
            query = {"orderby": orderby, "order": order}
            for _ in range(4):
                whole = await api.ids("events", per_page="50", **query)
                whole += await api.ids("events", per_page="50", page="2", **query)
                for page in (11, 2, 7, 12, 9):
                    found = await api.ids("events", per_page="5", page=str(page), **query)
                    assert found == whole[page * 5 - 5 : page * 5], (query, page)
                made.append(await make(chance.randrange(1000)))
                await api.delete(f"/events/{made.pop(chance.randrange(len(made)))}")
                moved = {"start_date": "2027-06-15", "end_date": "2027-06-15"}
                await api.patch(f"/events/{chance.choice(made)}", moved)


@pytest.mark.usefixtures("shallow")
async def test_deep_pages_are_right_after_others_wrote_meanwhile(pair: tuple[Api, Api]) -> None:
    reader, writer = pair
    chance = random.Random(6)

    async def write(count: int) -> None:
        for number in range(count):
            day = f"2027-06-{chance.randint(1, 28):02}"
            await writer.event(f"Event {number}", start_date=day, end_date=day)

    async def read(**query: str) -> None:
        for _ in range(30):
            assert await reader.ids("events", per_page="5", page=str(chance.randint(2, 10)), **query)

    await write(50)
    await asyncio.gather(write(15), write(15), read(), read(order="desc"), read(starts_after="2027-01-01"))
    whole = await reader.ids("events", per_page="80")
    for page in range(16, 0, -1):
        found = await reader.ids("events", per_page="5", page=str(page))
        assert found == whole[page * 5 - 5 : page * 5], page


async def test_conditions_mean_to_us_what_they_mean_to_the_database(api: Api) -> None:
    chance, links = random.Random(3), await linked(api)
    for _ in range(40):
        await api.made("events", **anything(chance, links))
    events = api.store.database["events"]
    known = 0
    for caller in CALLERS:
        for query in lists(links):
            values = load(EVENT.query_schema, query, api.store.site)
            asked = await api.store.lists.translate(EVENT, values, caller)
            conditions = [*asked.conditions, *(asked.dates or ())]
            assert fields_of(conditions) <= LIST_FIELDS | {"text"}
            if not can_evaluate(conditions):
                assert query.keys() & {"search", "geoloc_lat"}, query
                continue
            right = {row["_id"] async for row in events.find(asked.filter, {"_id": 1})}
            async for event in events.find({}, dict.fromkeys(SEARCHED, 0)):
                assert matches(conditions, event) is (event["_id"] in right), query
                known += 1
    assert known > 2000


async def test_time_goes_on(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that is kept is not given any more when the day is over."""
    now = api.store.site.now()
    await api.event("Today", start_date=str(now.date()), end_date=str(now.date()))
    assert (await api.get("/events"))[1]["total"] == 1
    assert (await api.get("/events", starts_after="now -1 day"))[1]["total"] == 1
    monkeypatch.setattr(type(api.store.site), "now", lambda _: now + timedelta(days=2))
    assert (await api.get("/events"))[1]["total"] == 0
    assert (await api.get("/events", starts_after="now -1 day"))[1]["total"] == 0


async def test_filters_follow_changes_of_the_records_that_they_name(pair: tuple[Api, Api]) -> None:
    """The reader has cached what its filters name; the writer is another process."""
    reader, writer = pair
    music = await writer.made("categories", name="Music")
    jazz = await writer.made("categories", name="Jazz")
    venue = await writer.made("venues", venue="Hall")
    event = await writer.event("Event", categories=[jazz["id"]], venue=venue["id"])
    for number in range(6):
        parent = music["id"] if number % 2 else 0
        assert (await writer.patch(f"/categories/{jazz['id']}", {"parent": parent}))[0] == 200
        shown = [event["id"]] if parent else []
        # A page that does not exist is refused only if it still does not exist.
        assert await reader.ids("events", categories="music", order=("asc", "desc")[number // 3]) == shown
        assert (await reader.get("/events", categories="music", per_page="1", page="2"))[0] == 404
        status = "trash" if number % 2 else "publish"
        assert (await writer.patch(f"/venues/{venue['id']}", {"status": status}))[0] == 200
        shown = [] if number % 2 else [event["id"]]
        assert await reader.ids("events", venue=str(venue["id"]), featured="0", page="1") == shown
    assert (await writer.delete(f"/categories/{music['id']}"))[0] == 200
    assert (await reader.get("/events", categories="music", page="1"))[0] == 400


async def test_a_page_from_the_end_while_the_list_becomes_longer(
    pair: tuple[Api, Api], by_histogram: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    api, writer = pair
    monkeypatch.setattr(page_finder, "MAX_SKIPPED", 6)
    made = [(await api.event(f"Event {number}"))["id"] for number in range(30)]
    read, later = PageFinder._read, ["Event 30"]

    async def read_later(finder: PageFinder, asked: ListQuery) -> Any:
        if later and finder is api.store.lists.finder:
            await writer.event(later.pop())
        return await read(finder, asked)

    monkeypatch.setattr(PageFinder, "_read", read_later)
    assert await api.ids("events", per_page="5", page="5", orderby="id") == made[20:25]
    assert not later
    assert by_histogram


async def test_a_page_that_did_not_exist_when_it_was_read(
    pair: tuple[Api, Api], by_histogram: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    api, writer = pair
    for number in range(5):
        await api.event(f"Event {number}")
    await api.get("/events", per_page="2")
    read, later = PageFinder._read_together, ["Event 5", "Event 6"]

    async def read_before(finder: PageFinder, asked: Any) -> Any:
        rows = await read(finder, asked)
        while later and finder is api.store.lists.finder:
            await writer.event(later.pop())
        return rows

    monkeypatch.setattr(
        api.store.lists.finder.batcher, "_load_batch", partial(read_before, api.store.lists.finder)
    )
    status, page = await api.get("/events", per_page="2", page="4")
    assert (status, page["total"], len(page["events"])) == (200, 7, 1)
    assert by_histogram
