"""What requests cost, in numbers that do not depend on the machine: commands, documents read, bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any, NamedTuple

import pytest
from pymongo.monitoring import (
    CommandFailedEvent,
    CommandListener,
    CommandStartedEvent,
    CommandSucceededEvent,
)

from config import Settings
from schemas import EVENT
from schemas.caller import EVERYBODY
from schemas.kind import load
from schemas.site import Site
from service.app import create_app
from service.mongo.hello import Address, HelloConnection
from service.store import Store, unstarted_store
from service.store.links import fanout
from service.store.lists import page_finder, pages, totals
from tests.conftest import Api

pytestmark = pytest.mark.slow

EVENTS = 60


class Most(NamedTuple):
    """What a list may cost at most when something was written since it was last asked for."""

    commands: int
    read: int
    """Documents that the server reads: those it answers, and what it looks up on the way."""
    bytes: int = 45_000


LISTS = {
    # The clock, the changes since, that there are no more; then the page with its total and
    # the clock once more; and the event that changed.
    "": Most(6, 20),
    "categories={category}": Most(6, 20),
    "tags={tag}": Most(6, 20),
    "venue={venue}": Most(6, 20),
    "organizer={organizer}": Most(6, 20),
    "start_date=2027-06-01&end_date=2027-06-30": Most(6, 20),
    "featured=1": Most(6, 20),
    "page=3": Most(6, 20),
    # The venues there are looked up.
    "geoloc_lat=50&geoloc_lng=8&geoloc_radius=100": Most(7, 20),
    # The words are looked up, and how many events have them; events are put in order after they are found.
    "search=concert": Most(8, 2 * EVENTS + 20),
}


class Counter(CommandListener):
    """Commands that a client has sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def started(self, event: CommandStartedEvent) -> None:
        self.sent.append(event.command_name)

    def succeeded(self, event: CommandSucceededEvent) -> None: ...

    def failed(self, event: CommandFailedEvent) -> None: ...

    def take(self) -> list[str]:
        """Those since the last time."""
        taken, self.sent = self.sent, []
        return taken


@pytest.fixture
def commands() -> Counter:
    return Counter()


@pytest.fixture
async def api(
    aiohttp_client: Any, mongodb_uri: str, store: Store, commands: Counter, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Api]:
    """An API whose commands to the database are counted."""
    async with unstarted_store(mongodb_uri, store.database.name, Site(), [commands]) as own:
        await own.start()
        # Events are counted beside the requests, at any time.
        monkeypatch.setattr(own.log, "update_soon", lambda: None)
        count_hello(own.feed.clock._connection, commands, monkeypatch)
        yield Api(await aiohttp_client(create_app(Settings(), own)), own)


def count_hello(connection: HelloConnection, commands: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    """Count what is not sent by the driver."""
    ask = connection.hello

    async def hello(address: Address) -> dict[str, Any] | None:
        commands.sent.append("hello")
        return await ask(address)

    monkeypatch.setattr(connection, "hello", hello)


async def documents_read(store: Store) -> int:
    """What the server has counted; nothing else uses it during a test."""
    status = await store.database.command("serverStatus")
    return int(status["metrics"]["queryExecutor"]["scannedObjects"])


async def keys_read(store: Store, request: Awaitable[list[int]]) -> tuple[list[int], int]:
    """What a request answers, and how many index keys the server reads for it. By its profiler: its counters
    contain what it reads for itself, too."""
    database = store.database
    await database.command("profile", 2)
    try:
        answer = await request
    finally:
        await database.command("profile", 0)
    rows = await database["system.profile"].find().to_list(None)
    await database.drop_collection("system.profile")
    assert any("keysExamined" in row for row in rows), rows
    return answer, sum(row.get("keysExamined", 0) for row in rows)


@pytest.fixture
async def links(api: Api) -> dict[str, int]:
    """Events of a usual size, all with the same links."""
    venue = await api.made("venues", venue="Hall", geo_lat=50, geo_lng=8, address="1 Main Street")
    links = {
        "venue": venue["id"],
        "organizer": (await api.made("organizers", organizer="Club", email="club@example.org"))["id"],
        "category": (await api.made("categories", name="Music"))["id"],
        "tag": (await api.made("tags", name="loud"))["id"],
    }
    for number in range(EVENTS):
        await api.event(
            f"Concert {number}",
            description="Some words that tell what will be played. " * 15,
            venue=links["venue"],
            organizer=links["organizer"],
            categories=[links["category"]],
            tags=[links["tag"]],
            featured=True,
        )
    await api.store.log.update()
    await api.store.feed.catch_up()
    return links


@pytest.mark.parametrize("query", LISTS)
async def test_lists(api: Api, store: Store, links: dict[str, int], commands: Counter, query: str) -> None:
    most, path = LISTS[query], "/events?" + query.format(**links)
    status, page = await api.get(path)
    assert (status, page["total"], len(page["events"])) == (200, EVENTS, 12)
    await api.get(f"{path}&per_page=5")  # the filter is used again: from now on there is a histogram
    commands.take()
    for _ in range(5):
        await api.get(path)
    assert commands.take() == ["hello"] * 5
    await api.patch(f"/events/{page['events'][0]['id']}", {"website": "https://example.org/"})
    commands.take()
    before = await documents_read(store)
    assert (await api.get(path))[1]["total"] == EVENTS
    assert len(sent := commands.take()) <= most.commands, sent
    assert await documents_read(store) - before <= most.read
    assert len(api.text) <= most.bytes


async def test_a_search_for_a_rare_word_after_some_for_frequent_ones(
    api: Api, store: Store, links: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """MongoDB would use the plan of the last search, and read all events."""
    monkeypatch.setattr(pages, "MAX_FOUND_BY_WORDS", EVENTS // 2)
    await api.event("Rehearsal")
    for search in ("concert", "words", "played"):
        assert (await api.get(f"/events?search={search}"))[1]["total"] == EVENTS
    for search in ("rehearsal", "rehears", "hearsal"):
        before = await documents_read(store)
        assert (await api.get(f"/events?search={search}"))[1]["total"] == 1
        assert await documents_read(store) - before <= EVENTS // 2


@pytest.mark.parametrize("max_counted", [5, 1000])
async def test_new_lists(
    api: Api, links: dict[str, int], commands: Counter, monkeypatch: pytest.MonkeyPatch, max_counted: int
) -> None:
    """Of filters and events that are known: the page, and then the clock."""
    monkeypatch.setattr(totals, "MAX_COUNTED", max_counted)
    monkeypatch.setattr(totals, "MAX_COUNTED_FIRST", max_counted)
    for query in ("", "categories={category}", "venue={venue}"):
        path = "/events?" + query.format(**links)
        for page in (1, 2):
            assert (await api.get(f"{path}&page={page}"))[0] == 200
        for day in range(1, 6):
            commands.take()
            status, page = await api.get(f"{path}&start_date=2027-05-0{day}")
            assert (status, page["total"]) == (200, EVENTS)
            assert set(sent := commands.take()) <= {"hello", "aggregate"}, sent
            assert sent.count("aggregate") == 1, sent
            assert len(sent) <= 2, sent


@pytest.mark.parametrize(
    "dates",
    ["starts_after=2027-05-0{}", "ends_after=2027-05-0{}", "strict_dates=1&ends_after=2027-05-0{}T10:00"],
)
async def test_a_histogram_without_events_is_not_built_again(
    api: Api, commands: Counter, monkeypatch: pytest.MonkeyPatch, dates: str
) -> None:
    monkeypatch.setattr(totals, "MAX_COUNTED", -1)
    monkeypatch.setattr(totals, "MAX_COUNTED_FIRST", -1)
    category = (await api.made("categories", name="Empty"))["id"]
    for day in range(1, 6):
        commands.take()
        status, page = await api.get(f"/events?categories={category}&{dates.format(day)}")
        assert (status, page["total"]) == (200, 0)
        sent = commands.take()
        assert sent.count("aggregate") == 1 or day == 1, sent


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("orderby", ["start_date", "end_date"])
async def test_deep_pages_are_found_from_the_beginning_of_their_day(
    api: Api, store: Store, monkeypatch: pytest.MonkeyPatch, order: str, orderby: str
) -> None:
    monkeypatch.setattr(totals, "MAX_COUNTED", 10)
    monkeypatch.setattr(totals, "MAX_COUNTED_FIRST", 10)
    monkeypatch.setattr(page_finder, "MAX_SKIPPED", 10)
    for number in range(120):
        day = f"2027-06-{number // 5 + 1:02}"
        await api.event(f"Event {number}", start_date=day, end_date=day)
    query = {"orderby": orderby, "order": order}
    whole = [*await api.ids("events", per_page="60", **query)]
    whole += await api.ids("events", per_page="60", page="2", **query)
    for page in (20, 15, 24, 12):
        found, keys = await keys_read(store, api.ids("events", page=str(page), per_page="5", **query))
        assert found == whole[page * 5 - 5 : page * 5]
        assert keys <= 3 * 10, page


@pytest.mark.parametrize(
    "query", [{"ends_after": "2027-06-12"}, {"ends_after": "2027-06-12 23:00", "strict_dates": "1"}]
)
async def test_what_has_not_ended_is_found_without_what_has(
    api: Api, store: Store, query: dict[str, str]
) -> None:
    events = []
    for number in range(120):
        day = number // 5 + 1
        days = {"start_date": f"2027-06-{day:02}", "end_date": f"2027-06-{day + number % 2:02}"}
        events.append((await api.event(f"Event {number}", **days), day + number % 2))
    right = [event["id"] for event, last in events if last > 12]
    for use in range(totals.FIRST_USES + 1):  # from now on there is a histogram
        assert await api.ids("events", per_page=f"{100 - use}", **query) == right
    for page in (1, 2, 3):
        found, keys = await keys_read(store, api.ids("events", page=str(page), per_page="5", **query))
        assert found == right[page * 5 - 5 : page * 5]
        assert keys <= 3 * 15, page
    long = await api.event("Long", start_date="2027-06-02", end_date="2027-06-23")
    assert (await api.ids("events", per_page="5", **query)) == [long["id"], *right[:4]]


async def test_the_last_page_is_found_from_the_end(
    api: Api, store: Store, links: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(totals, "MAX_COUNTED", 10)
    monkeypatch.setattr(totals, "MAX_COUNTED_FIRST", 10)
    monkeypatch.setattr(page_finder, "MAX_SKIPPED", 10)
    first = await api.ids("events", per_page="50", orderby="title")
    for page in (12, 11):
        found, keys = await keys_read(store, api.ids("events", page=str(page), per_page="5", orderby="title"))
        assert (len(found), set(found).isdisjoint(first)) == (5, True)
        assert keys <= 3 * 10, page


async def test_items(api: Api, links: dict[str, int], commands: Counter) -> None:
    ids = await api.ids("events")
    # For a term the feed is read once more, to see whether everything is counted.
    ways = {f"/events/{ids[0]}": [], "/events/by-slug/concert-7": [], f"/tags/{links['tag']}": ["hello"]}
    for path, more in ways.items():
        await api.get(path)
        commands.take()
        await api.get(path)
        assert commands.take() == ["hello"]
        await api.event("Another")
        commands.take()
        await api.get(path)
        assert commands.take() == ["hello", "getMore", "getMore", *more, "find"]


async def test_requests_at_the_same_time_share_their_commands(api: Api, commands: Counter) -> None:
    events = [await api.event(f"Event {number}") for number in range(20)]
    paths = [f"/events/{event['id']}" for event in events] + ["/events"] * 20
    for _ in range(2):  # connections are open when requests come at the same time
        commands.take()
        await asyncio.gather(*(api.get(path) for path in paths))
    assert len(sent := commands.take()) <= len(paths) / 4, sent


async def test_creations(api: Api, links: dict[str, int], commands: Counter) -> None:
    await api.event("Lecture", description="Known words", venue=links["venue"])
    known = {"venue": links["venue"], "categories": [links["category"]]}
    named = {"venue": {"venue": "Hall"}, "categories": ["music"], "tags": ["loud"]}
    # The event; with links also what they are, and whether they have changed meanwhile.
    for number, fields, most in ((1, {}, 1), (2, known, 3), (3, known, 3), (4, named, 3)):
        commands.take()
        await api.event(f"Lecture {number}", description="Known words", **fields)
        assert len(sent := commands.take()) <= most, sent


async def test_ids(api: Api, commands: Counter) -> None:
    """The first block is small, and the last of these is the seventh."""
    await api.store.ids.next("space")
    commands.take()
    given = [await api.store.ids.next("space") for _ in range(1_100)]
    assert given == [*range(2, 1_102)]
    assert len(sent := commands.take()) <= 6, sent


async def test_a_fan_out_reads_every_event_a_few_times_only(
    api: Api, store: Store, links: dict[str, int], commands: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many batches it needs: it does not read those before again."""
    monkeypatch.setattr(fanout, "EVENTS_PER_COMMAND", 5)
    commands.take()
    before = await documents_read(store)
    await api.patch(f"/venues/{links['venue']}", {"venue": "Another hall"})
    assert len(sent := commands.take()) <= 2 * EVENTS / 5 + 20, sent
    assert await documents_read(store) - before <= 2 * EVENTS + 20
    assert await store.database["events"].distinct("venue.venue") == ["Another hall"]


SAME, SEVERAL = ["Lecture"] * 40, [f"Lecture {number}" for number in range(40)]


@pytest.mark.parametrize(
    ("before", "titles"),
    [([], SEVERAL), ([], SAME), (SAME, SAME), (SEVERAL, SEVERAL)],
    ids=["new titles", "one title", "one title again", "titles again"],
)
async def test_creations_at_the_same_time_share_their_commands(
    api: Api, links: dict[str, int], commands: Counter, before: list[str], titles: list[str]
) -> None:
    """Also those of one title, whose slugs must differ. One after the other they need four each."""
    for title in ["0 1 2 3 4 5 6 7 8 9", *before]:
        await api.event(title, venue=links["venue"])
    commands.take()
    await asyncio.gather(*(api.event(title, venue=links["venue"]) for title in titles))
    assert len(sent := commands.take()) <= 60, sent


async def test_titles_that_exist_several_times_cost_one_more_command(
    api: Api, store: Store, links: dict[str, int], commands: Counter
) -> None:
    """In a process that has not created them. One after the other they would need a few each."""
    day = {"start_date": "2027-06-01", "end_date": "2027-06-01"}
    for title in SEVERAL * 3:
        data = load(EVENT.body_schema, {"title": title, **day}, store.site)
        await store.create(EVENT, data, EVERYBODY)
    commands.take()
    await asyncio.gather(*(api.event(title, venue=links["venue"]) for title in SEVERAL))
    assert len(sent := commands.take()) <= 60, sent


async def test_changes_of_one_record_at_the_same_time_are_not_tried_in_vain(
    api: Api, commands: Counter
) -> None:
    event = await api.event()
    commands.take()
    paths = [f"/events/{event['id']}"] * 20
    await asyncio.gather(
        *(api.patch(path, {"website": f"https://e.org/{at}"}) for at, path in enumerate(paths))
    )
    assert sorted(commands.take()) == ["find"] * 20 + ["update"] * 20
