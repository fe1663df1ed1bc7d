"""The change feed: a mirror that follows it has what the lists show, for every caller and filter."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientError, ClientResponse, ClientSession
from bson.datetime_ms import DatetimeMS
from pymongo.errors import AutoReconnect, NetworkTimeout

from handlers.responses.streamed import StreamedResponse
from schemas.changes import ChangesInput
from schemas.kind import load
from schemas.site import Site
from service.changes import log as change_log
from service.changes.feed import CHECKPOINT
from service.changes.log_rows import begin_log
from service.migrations.recount import LOST, set_checkpoint, snapshot_time
from service.store import Store
from tests.checker import lose_changes, until
from tests.conftest import Api, MakeApi
from tests.mirror import Get, Mirror
from tests.samples import TIMES
from tests.test_faults import running
from tests.wire import connected

Pair = tuple[Api, Api]
Told = list[tuple[str, str, int]]
STATUSES = ("publish", "publish", "draft", "private", "trash")


def getting(api: Api) -> Get:
    async def get(path: str) -> Any:
        status, body = await api.get(path)
        assert status == 200, (path, body)
        return body

    return get


async def told(api: Api, token: str, query: str = "") -> Told:
    page = await getting(api)(f"/changes?since={token}&{query}")
    assert not page["has_more"]
    return [(change["action"], change["kind"], change["id"]) for change in page["changes"]]


async def token_of(api: Api) -> str:
    return str((await getting(api)("/changes"))["next"])


async def test_every_action_is_told_in_order_with_the_record_as_it_is_now(pair: Pair) -> None:
    token = await token_of(pair[1])
    event = await pair[0].event(categories=["Jazz"], venue={"venue": "Hall"})
    id, venue, category = event["id"], event["venue"]["id"], event["categories"][0]["id"]
    page = await getting(pair[1])(f"/changes?since={token}")
    assert [(one["action"], one["kind"], one["id"]) for one in page["changes"]] == [
        ("created", "categories", category),
        ("created", "venues", venue),
        ("created", "events", id),
    ]
    assert page["changes"][2]["record"] == {name: value for name, value in event.items() if name != "json_ld"}
    assert datetime.fromisoformat(page["changes"][2]["changed_utc"])
    token = page["next"]
    for change in ({"title": "New"}, {"status": "trash"}, {"status": "publish"}):
        assert (await pair[0].patch(f"/events/{id}", change))[0] == 200
    steps = [("changed", "events", id), ("changed", "events", id), ("restored", "events", id)]
    assert await told(pair[1], token) == steps  # it is not in the trash any more
    token = await token_of(pair[1])
    assert (await pair[0].patch(f"/venues/{venue}", {"venue": "New"}))[0] == 200
    assert sorted(await told(pair[1], token)) == [("changed", "events", id), ("changed", "venues", venue)]
    token = await token_of(pair[1])
    assert (await pair[0].delete(f"/categories/{category}"))[0] == 200
    assert (await pair[0].delete(f"/events/{id}"))[0] == 200
    assert await told(pair[1], token, "kinds=categories") == [("removed", "categories", category)]
    assert await told(pair[1], token, "kinds=events") == [("trashed", "events", id)]


async def test_pages_of_changes_are_the_same_for_all_readers(pair: Pair) -> None:
    token = await token_of(pair[0])
    await asyncio.gather(*(pair[at % 2].event(f"Event {at}") for at in range(20)))
    orders = []
    for api, limit in ((pair[0], 3), (pair[1], 20), (pair[1], 500)):
        mirror = Mirror(limit=limit)
        mirror.token = token
        await mirror.follow(getting(api))
        orders.append(mirror.told)
    assert orders[0] == orders[1] == orders[2]
    assert len(orders[0]) == len(set(orders[0])) == 20


VISIBILITY: list[tuple[dict[str, Any], dict[str, Any], str | None, str | None]] = [
    # before, change, told to anonymous readers, told to viewers
    ({}, {"title": "New"}, "changed", "changed"),
    ({}, {"status": "draft"}, "removed", "changed"),
    ({}, {"status": "trash"}, "trashed", "trashed"),
    ({}, {"hide_from_listings": True}, "left", "left"),
    ({}, {"new_password": "secret"}, "changed", "changed"),
    ({"status": "draft"}, {"title": "New"}, None, "changed"),
    ({"status": "draft"}, {"status": "publish"}, "created", "changed"),
    ({"status": "draft"}, {"status": "trash"}, None, "trashed"),
    ({"status": "trash"}, {"status": "draft"}, None, "restored"),
    ({"status": "trash"}, {"status": "publish"}, "restored", "restored"),
]


OF_EVENTS = {"hide_from_listings", "new_password"}


@pytest.mark.parametrize(
    ("plural", "before", "change", "public", "viewer"),
    [
        (plural, *case)
        for plural in ("events", "venues")
        for case in VISIBILITY
        if plural == "events" or not case[1].keys() & OF_EVENTS
    ],
)
async def test_callers_are_told_what_they_may_see(
    roles: dict[str, Api],
    plural: str,
    before: dict[str, Any],
    change: dict[str, Any],
    public: str | None,
    viewer: str | None,
) -> None:
    editor, name = roles["editor"], "title" if plural == "events" else "venue"
    body = {name: "Record", **TIMES} if plural == "events" else {name: "Record"}
    id = (await editor.made(plural, **body))["id"]
    if before:
        assert (await editor.patch(f"/{plural}/{id}", before))[0] == 200
    token = await token_of(editor)
    changed = {name if key == "title" else key: value for key, value in change.items()}
    assert (await editor.patch(f"/{plural}/{id}", changed))[0] == 200
    for role, action in (("public", public), ("viewer", viewer)):
        expected = [(action, plural, id)] if action else []
        assert await told(roles[role], token) == expected, role


async def test_drafts_are_told_to_their_author_only(roles: dict[str, Api]) -> None:
    token = await token_of(roles["editor"])
    id = (await roles["author"].event(status="draft"))["id"]
    for role in ("author", "editor", "viewer"):
        assert await told(roles[role], token) == [("created", "events", id)]
    for role in ("public", "contributor"):
        assert await told(roles[role], token) == []


async def test_protected_fields_are_not_told(roles: dict[str, Api]) -> None:
    token = await token_of(roles["public"])
    await roles["editor"].event(password="secret", description="Nobody knows.")
    page = await getting(roles["public"])(f"/changes?since={token}")
    assert [change["record"]["description"] for change in page["changes"]] == [""]
    assert (await roles["public"].get("/changes", since=token, status="draft"))[0] == 400


async def test_a_filter_tells_what_enters_and_leaves(api: Api) -> None:
    jazz = (await api.made("categories", name="Jazz"))["id"]
    rock = (await api.made("categories", name="Rock"))["id"]
    bebop = (await api.made("categories", name="Bebop", parent=jazz))["id"]
    event, other = (await api.event(categories=[bebop]))["id"], (await api.event(categories=[rock]))["id"]
    for path, change, expected in (
        (f"/events/{other}", {"title": "New"}, []),
        (f"/events/{other}", {"featured": True}, []),
        # It may have been in a category that was below Jazz until a moment ago.
        (f"/events/{other}", {"categories": []}, [("left", "events", other)]),
        (f"/events/{event}", {"title": "New"}, [("changed", "events", event)]),
        (f"/categories/{bebop}", {"parent": rock}, [("left", "events", event)]),
        (f"/categories/{bebop}", {"parent": jazz}, [("changed", "events", event)]),
        (f"/events/{event}", {"categories": [rock]}, [("left", "events", event)]),
        (f"/events/{event}", {"title": "Newer"}, []),
        (f"/events/{event}", {"categories": [jazz]}, [("changed", "events", event)]),
        (f"/events/{event}", {"status": "trash"}, [("trashed", "events", event)]),
    ):
        token = await token_of(api)
        assert (await api.patch(path, change))[0] == 200
        actions = await told(api, token, "categories=jazz")
        assert sorted(set(actions)) == expected, (path, change)


async def test_a_filter_that_is_wrong_answers_as_the_list_does(api: Api) -> None:
    token = await token_of(api)
    for query in ("categories=none", "venue=99", "start_date=never", "geoloc_lat=1", "limit=0", "kinds=x"):
        for path in ("/changes", "/changes/stream"):
            status, body = await api.get(f"{path}?since={token}&{query}")
            assert (status, body["code"]) == (400, "rest_invalid_param"), query


@pytest.mark.parametrize("name", ["page", "per_page", "modified_after", "orderby", "order", "fields"])
async def test_parameters_that_only_lists_have_are_refused(api: Api, name: str) -> None:
    for path in ("/changes", "/changes/stream"):
        status, body = await api.get(f"{path}?{name}=1&categories=none")
        assert (status, body["data"]["params"].keys()) == (400, {name, "categories"})
        assert "since and limit" in body["data"]["params"][name]
    assert (await api.get(f"/changes?{name}=&colour=red"))[0] == 200  # not sent, and unknown


@pytest.mark.parametrize(("path", "name"), [("/changes", "limit"), ("/events", "per_page")])
async def test_a_limit_beyond_the_maximum_is_lowered_to_it(api: Api, path: str, name: str) -> None:
    for value in ("501", str(2**63 - 1)):
        assert (await api.get(f"{path}?{name}={value}"))[0] == 200
        assert load(ChangesInput, {"limit": value}, Site())["limit"] == 500
    for value in (str(2**63), "9" * 5000):
        status, body = await api.get(f"{path}?{name}={value}")
        message = f"Must be a whole number of at most {2**63 - 1}."
        assert (status, body["data"]["params"]) == (400, {name: message})


@pytest.mark.parametrize("token", ["x", "1", "abc-", "-", "abc-x", "12-³", "🎷-1"])
async def test_a_malformed_token_is_refused(api: Api, token: str) -> None:
    status, body = await api.get("/changes", since=token)
    assert (status, body["data"]["params"].keys()) == (400, {"since"})


async def test_an_expired_token_says_how_to_begin_again(api: Api) -> None:
    token = await token_of(api)
    log, _, number = token.rpartition("-")
    second = (await api.event(), await api.event())[1]["id"]
    page = await getting(api)(f"/changes?since={token}")
    for wrong in (f"0ab1-{number}", f"{log}-{int(number) + 3}"):
        status, body = await api.get("/changes", since=wrong)
        assert (status, body["code"]) == (410, "rest_token_expired")
    await api.store.database["changes"].delete_one({"_id": int(number) + 1})
    status, body = await api.get("/changes", since=token)
    assert (status, "without since" in body["message"]) == (410, True)
    assert await told(api, f"{log}-{int(number) + 1}") == [("created", "events", second)]
    await api.store.database["changes"].delete_many({})
    assert (await api.get("/changes", since=token))[0] == 410
    assert await told(api, page["next"]) == []


async def test_a_restored_database_begins_a_new_log(api: Api) -> None:
    token = await token_of(api)
    await api.store.database["meta"].update_one({"_id": CHECKPOINT}, {"$set": {"events_uuid": None}})
    await api.store.start()
    assert (await api.get("/changes", since=token))[0] == 410
    assert await told(api, await token_of(api)) == []


@asynccontextmanager
async def lost_changes(api: Api, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """The oplog does not reach back to the checkpoint: what changes meanwhile has to be found."""
    meta, log = api.store.database["meta"], api.store.database["changes"]
    before = await meta.find_one({"_id": CHECKPOINT})
    assert before is not None
    yield
    await api.store.log.update()
    await log.delete_many({"_id": {"$gt": before["number"]}})
    await meta.replace_one({"_id": CHECKPOINT}, before)
    await lose_changes(api.store, monkeypatch)
    await api.store.maintain()


async def test_lost_changes_are_found_by_comparison(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    get = getting(api)
    kept, gone = (await api.event("Kept"))["id"], (await api.event("Gone", tags=["t"]))["id"]
    tag = (await get("/tags?hide_empty=false"))["tags"][0]["id"]
    mirror = Mirror()
    await mirror.begin(get)
    async with lost_changes(api, monkeypatch):
        assert (await api.patch(f"/events/{kept}", {"title": "New"}))[0] == 200
        assert (await api.delete(f"/events/{gone}"))[0] == 200
        assert (await api.delete(f"/tags/{tag}"))[0] == 200
        added = (await api.event("Added"))["id"]
    await mirror.follow(get)
    assert await mirror.differences(get) == {}
    assert set(mirror.told) >= {("changed", "events", kept), ("changed", "events", added)}
    assert set(mirror.told) >= {("removed", "events", gone), ("removed", "tags", tag)}


async def test_lost_changes_are_found_beside_those_of_another_program(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    id, token = (await api.event("Kept"))["id"], await token_of(api)
    async with lost_changes(api, monkeypatch):
        assert (await api.patch(f"/events/{id}", {"title": "New"}))[0] == 200
        stored = await api.store.database["events"].find_one({"_id": id}) or {}
        await api.store.database["events"].insert_one(stored | {"_id": DatetimeMS(2**60), "slug": "by-hand"})
    assert ("changed", "events", id) in await told(api, token)


async def test_lost_changes_are_logged_by_one_process(
    pair: tuple[Api, Api], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The other one runs its maintenance when everything was repaired."""
    await pair[0].event()
    await pair[0].store.log.update()
    for api in pair:
        await lose_changes(api.store, monkeypatch)
    logged = []
    for api in pair:
        await api.store.maintain()
        logged.append(await api.store.database["changes"].count_documents({"is_lost": True}))
        assert not api.store.feed.has_lost_changes
    assert logged[0] == logged[1] > 0
    assert caplog.messages.count(LOST) == 1


async def test_after_the_loss_of_too_many_changes_the_log_begins_anew(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logging them all could fill the oplog, so that changes are lost again and again."""
    token = await token_of(api)
    with pytest.MonkeyPatch.context() as limit:
        limit.setattr(change_log, "MAX_LOST_RECORDS", 2)
        async with lost_changes(api, monkeypatch):
            for number in range(3):
                await api.event(f"Event {number}", tags=["t"])
    status, body = await api.get("/changes", since=token)
    assert (status, "without since" in body["message"]) == (410, True)
    token = await token_of(api)
    assert (await api.get("/tags"))[1]["tags"][0]["count"] == 3
    event = (await api.event("Later", tags=["t"]))["id"]
    assert await told(api, token) == [("created", "events", event)]
    assert (await api.get("/tags"))[1]["tags"][0]["count"] == 4


async def test_lost_moves_of_categories_are_found(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below a category that is moved, no event changes, but lists get other events."""
    get = getting(api)
    music, sport, passed = [
        (await api.made("categories", name=name))["id"] for name in ("Music", "Sport", "Passed")
    ]
    jazz = (await api.made("categories", name="Jazz", parent=music))["id"]
    bebop = (await api.made("categories", name="Bebop", parent=jazz))["id"]
    below = (await api.made("categories", name="Below", parent=passed))["id"]
    for category in (jazz, bebop, below):
        await api.event("Event", categories=[category])
    for plural in ("events", "categories"):
        await api.store.database[plural].update_many({}, {"$set": {"modified_utc": datetime(2020, 1, 1)}})
    mirrors = [Mirror(), Mirror(filter=f"categories={music}"), Mirror(filter=f"categories={sport}")]
    for mirror in mirrors:
        await mirror.begin(get)
    async with lost_changes(api, monkeypatch):
        assert (await api.patch(f"/categories/{jazz}", {"parent": sport}))[0] == 200
        assert (await api.delete(f"/categories/{passed}"))[0] == 200
    for mirror in mirrors:
        await mirror.follow(get)
        assert await mirror.differences(get) == {}


async def test_a_process_that_dies_while_logging_loses_and_doubles_nothing(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = await token_of(pair[1])

    async def dies(*arguments: Any) -> bool:
        raise ConnectionError("died")

    monkeypatch.setattr(pair[0].store.log._rows, "append_changes", dies)
    ids = [(await pair[0].event(f"Event {number}"))["id"] for number in range(5)]
    assert await told(pair[1], token) == [("created", "events", id) for id in ids]


class Crowd:
    """Writers who change everything at random, in two processes."""

    def __init__(self, apis: tuple[Api, ...], seed: int) -> None:
        self.apis, self.chance = apis, random.Random(seed)

    async def write(self) -> None:
        kind = self.chance.choice(("event", "event", "event", "venue", "category"))
        api = self.chance.choice(self.apis)
        steps: dict[str, Callable[[Api], Awaitable[tuple[int, Any]]]] = {
            "event": self.change_event,
            "venue": self.change_venue,
            "category": self.change_category,
        }
        status, body = await steps[kind](api)
        assert status in (200, 201, 400, 404, 409, 410), body

    async def some(self, api: Api, plural: str) -> int | None:
        rows = [row["_id"] async for row in api.store.database[plural].find({}, {"_id": 1})]
        return self.chance.choice(rows) if rows else None

    async def change_event(self, api: Api) -> tuple[int, Any]:
        choose = self.chance.choice
        categories = [one for one in [await self.some(api, "categories")] if one and choose((0, 1))]
        venues = [one for one in [await self.some(api, "venues")] if one and choose((0, 1))]
        body: dict[str, Any] = {
            "title": f"Event {self.chance.random()}",
            "status": choose(STATUSES),
            "hide_from_listings": choose((False, False, True)),
            "categories": categories,
            "venue": venues,
            "featured": choose((False, True)),
        }
        id = await self.some(api, "events")
        if id is None or choose((0, 0, 1)):
            return await api.post("/events", body | TIMES)
        fields = self.chance.sample(sorted(body), self.chance.randrange(1, 4))
        return await api.patch(f"/events/{id}", {name: body[name] for name in fields})

    async def change_venue(self, api: Api) -> tuple[int, Any]:
        place = {"geo_lat": self.chance.choice((50.0, 10.0)), "geo_lng": 7.0}
        body = {"venue": f"Venue {self.chance.random()}", "status": self.chance.choice(STATUSES), **place}
        id = await self.some(api, "venues")
        if id is None or self.chance.random() < 0.3:
            return await api.post("/venues", body)
        return await api.patch(f"/venues/{id}", body)

    async def change_category(self, api: Api) -> tuple[int, Any]:
        id, parent = await self.some(api, "categories"), await self.some(api, "categories")
        if id is None or self.chance.random() < 0.4:
            return await api.post(
                "/categories", {"name": f"Category {self.chance.random()}", "parent": parent or 0}
            )
        if id > 2 and self.chance.random() < 0.3:
            return await api.delete(f"/categories/{id}")
        return await api.patch(f"/categories/{id}", {"parent": self.chance.choice((0, parent or 0))})


FILTERS = (
    "",
    "categories=1",
    "venue=1",
    "geoloc_lat=50&geoloc_lng=7",
    "geoloc=true",
    "featured=true",
    "search=event",
    "status=draft",
    "status=draft,trash",
)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
async def test_mirrors_have_what_the_lists_show(pair: Pair, roles: dict[str, Api], seed: int) -> None:
    """Of everybody who sees everything, of anonymous readers, and with filters, after every pause. Some of
    the time no process logs, and once all forget what they have read, as after a crash."""
    for name in ("One", "Two"):
        await pair[0].made("categories", name=name)
    await pair[0].made("venues", venue="First", geo_lat=50, geo_lng=7)
    readers = [(pair[1], Mirror(("events",) if one else Mirror().kinds, one)) for one in FILTERS]
    readers += [
        (roles["public"], Mirror(("events",) if one else Mirror().kinds, one)) for one in FILTERS[:-2]
    ]
    crowd = Crowd(pair, seed)
    for _ in range(15):
        await crowd.write()
    for api, mirror in readers:
        await mirror.begin(getting(api))
    for round in range(6):
        await asyncio.gather(*(crowd.write() for _ in range(8)))
        for api in pair if round == 3 else ():
            await api.store.feed.close()
        for api, mirror in readers:
            if crowd.chance.random() < 0.6 or round == 5:
                await follow(api, mirror)


async def follow(api: Api, mirror: Mirror) -> None:
    """Follow and compare. A filter is refused while its venue is in the trash or its category is gone."""
    status, _body = await api.get(f"/events?{mirror.filter}")
    if status == 200:
        await mirror.follow(getting(api))
        assert await mirror.differences(getting(api)) == {}, mirror.filter


async def events_of(api: Api, path: str, number: int, headers: dict[str, str]) -> list[tuple[str, Any]]:
    """(id, data) of the first server-sent events that have data."""
    async with api.client.get(api.store.site.namespace + path, headers=headers) as answer:
        return await events_in(answer, number)


async def events_in(answer: ClientResponse, number: int) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    assert (answer.status, answer.content_type) == (200, "text/event-stream")
    lines = ["", ""]
    async with asyncio.timeout(30):
        while len(found) < number:
            lines.append((await answer.content.readuntil(b"\n")).decode().rstrip("\n"))
            if lines[-1] == "" and lines[-2].startswith("data: "):
                found.append((lines[-3].removeprefix("id: "), json.loads(lines[-2].removeprefix("data: "))))
    return found


async def test_server_sent_events_continue_where_they_were_interrupted(pair: Pair) -> None:
    token, headers = await token_of(pair[1]), {"Accept-Encoding": "gzip"}
    ids = [(await pair[0].event(f"Event {number}"))["id"] for number in range(3)]
    first = await events_of(pair[1], f"/changes/stream?since={token}", 2, headers)
    assert [change["id"] for _, change in first] == ids[:2]
    page = await getting(pair[1])(f"/changes?since={token}")
    assert [change for _, change in first] == page["changes"][:2]

    async def later() -> int:
        await asyncio.sleep(0.5)
        return int((await pair[0].event("Later"))["id"])

    resumed = headers | {"Last-Event-ID": first[-1][0]}
    rest, new = await asyncio.gather(events_of(pair[1], "/changes/stream", 2, resumed), later())
    assert [change["id"] for _, change in rest] == [ids[2], new]


async def test_a_stream_without_changes_sends_heartbeats(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handlers.changes.HEARTBEAT_SECONDS", 0.05)
    token = await token_of(api)
    address = f"{api.store.site.namespace}/changes/stream?kinds=tags"
    async with asyncio.timeout(30), api.client.get(address) as answer:
        lines = [(await answer.content.readline()).decode() for _ in range(6)]
    assert lines == [f"id: {token}\n", "\n"] * 3


async def test_a_stream_goes_on_after_an_outage(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handlers.changes.RETRY_SECONDS", 0.05)
    monkeypatch.setattr("handlers.changes.HEARTBEAT_SECONDS", 600.0)  # it does not wait for the next one
    outages = [AutoReconnect("down"), NetworkTimeout("slow")]
    checkpoint = api.store.log.checkpoint

    async def fails() -> Any:
        if outages and is_following.is_set():
            raise outages.pop()
        return await checkpoint()

    is_following = asyncio.Event()
    monkeypatch.setattr(api.store.log, "checkpoint", fails)

    async def later() -> int:
        await asyncio.sleep(0.5)
        is_following.set()
        return int((await api.event())["id"])

    async with asyncio.timeout(60):
        events, id = await asyncio.gather(events_of(api, "/changes/stream", 1, {}), later())
    assert [change["id"] for _, change in events] == [id]
    assert outages == []


async def test_streams_have_a_limit_of_their_own(make_api: MakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handlers.changes.HEARTBEAT_SECONDS", 0.5)
    api = await make_api(max_concurrent=2)
    address = f"{api.store.site.namespace}/changes/stream"
    async with api.client.get(address) as first, api.client.get(address) as second:
        assert (first.status, second.status) == (200, 200)
        assert (await api.get("/changes/stream"))[0] == 503
        assert (await api.get("/events"))[0] == 200

    async def is_free() -> bool:
        async with api.client.get(address) as third:
            return third.status == 200

    await until(is_free)


async def test_a_stream_ends_so_that_clients_log_in_again(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handlers.changes.HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr("handlers.changes.MAX_STREAM_SECONDS", 0.2)
    async with asyncio.timeout(30):
        status, text = await api.get("/changes/stream")
    assert (status, text.count("id: ") > 1) == (200, True)


@pytest.mark.parametrize(
    ("last", "status"), [("garbage", 400), ("\N{SAXOPHONE}-1", 400), ("9" * 5000, 400), ("0abc-1", 410)]
)
async def test_a_wrong_last_event_id_is_answered_before_the_stream(api: Api, last: str, status: int) -> None:
    """A browser that gets anything but 200 does not connect again, and tells its page."""
    since = await token_of(api)
    answer = await api.send("GET", f"/changes/stream?since={since}", headers={"Last-Event-ID": last})
    assert answer[0] == answer[1]["data"]["status"] == status


@pytest.mark.slow
async def test_a_client_that_never_reads_delays_nobody(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes are read for a client when it has taken the ones before: what waits for it fits into the
    buffers of its connection."""
    streams: list[StreamedResponse] = []
    prepare = StreamedResponse.prepare

    async def noted(self: StreamedResponse, request: Any) -> Any:
        streams.append(self)
        return await prepare(self, request)

    monkeypatch.setattr(StreamedResponse, "prepare", noted)
    token, number = await token_of(api), 80
    path = f"/changes/stream?limit=1&since={token}"
    async with connected(int(api.client.port or 0)) as idle:
        head = f"GET {api.store.site.namespace}{path} HTTP/1.1\r\nHost: localhost\r\n\r\n"
        await idle.send(head.encode())
        for at in range(number):
            await api.event(f"Event {at}", description="€" * 100_000)
        assert len(await events_of(api, path, number, {})) == number
        sent_to_idle, sent = [one._payload_writer.output_size for one in streams if one._payload_writer]
    assert sent > number * 300_000
    assert sent_to_idle < sent / 2


async def test_a_stream_continues_after_a_kill(api: Api, mongodb_uri: str, tmp_path: Path) -> None:
    """A client that continues with the last ID it was sent misses nothing that was written meanwhile."""
    options = {"MONGODB_URI": mongodb_uri, "DATABASE": api.store.database.name}
    seen: list[tuple[str, Any]] = []
    token, ids = await token_of(api), [(await api.event("Before"))["id"]]
    for name in ("first", "second"):
        async with running(tmp_path / name, **options) as service, ClientSession() as client:
            last = seen[-1][0] if seen else token
            headers = {"Last-Event-ID": last}
            async with client.get(f"{service.api}/changes/stream", headers=headers) as answer:
                seen += await events_in(answer, len(ids) - len(seen))
                service.process.kill()
                with pytest.raises(ClientError):
                    await answer.read()
        ids.append((await api.event("While there was no service"))["id"])
    assert [change["id"] for _, change in seen] == ids[:2]


async def test_a_log_that_is_begun_anew_uses_no_number_twice(pair: Pair) -> None:
    """Another process may append rows while the log is begun anew."""
    await pair[0].event("Before")
    await pair[0].store.log.update()
    before = (await pair[0].store.log.checkpoint()).number
    log = await begin_log(pair[0].store.database)
    await pair[1].event("Meanwhile")
    await pair[1].store.log.update()
    await set_checkpoint(pair[0].store.database, await snapshot_time(pair[0].store.database), log)
    await pair[0].event("After")
    await pair[0].store.log.update()
    assert (await pair[0].store.log.checkpoint()).number == before + 2


async def test_events_of_a_moved_category_are_not_logged_by_a_process_that_is_too_late(pair: Pair) -> None:
    jazz, music = [(await pair[0].made("categories", name=name))["id"] for name in ("Jazz", "Music")]
    await pair[0].event("Concert", categories=[jazz])
    late, rows = pair[1].store, pair[1].store.database["changes"]
    read = await late.log.checkpoint()
    assert (await pair[0].patch(f"/categories/{jazz}", {"parent": music}))[0] == 200
    await late.feed.catch_up()
    changes, until_ = list(late.feed.unlogged), late.feed.time
    await pair[0].store.log.update()
    logged = await rows.count_documents({})
    assert any(change.is_move for change in changes)
    assert not await late.log._rows.append_changes(changes, read, until_)
    assert await rows.count_documents({}) == logged


async def test_updates_of_the_log_pause_also_if_something_is_written_during_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_log, "PAUSE_SECONDS", 60.0)
    log, second = store.log, list[asyncio.Task[None]]()
    update = log._update

    async def updating() -> None:
        second.append(log.update_soon())
        await update()

    monkeypatch.setattr(log, "_update", updating)
    await log.update_soon()
    await asyncio.sleep(0.1)
    assert [task.done() for task in second] == [False]
    log.end_pause()
    await second[0]
    assert len(second) == 2


async def test_events_of_a_moved_category_are_logged_once_by_two_processes_at_a_time(pair: Pair) -> None:
    music, jazz = [(await pair[0].made("categories", name=name))["id"] for name in ("Music", "Jazz")]
    await pair[0].event("Concert", categories=[jazz])
    for api in pair:
        await api.store.log.update()
    late, rows = pair[1].store, pair[1].store.database["changes"]
    read = await late.log.checkpoint()
    assert (await pair[0].patch(f"/categories/{jazz}", {"parent": music}))[0] == 200
    await late.feed.catch_up()
    changes = [change for change in late.feed.unlogged if change.at > read.at]
    if (await late.log.checkpoint()) == read:  # else the background task was first
        (move,) = (change for change in changes if change.is_move)
        assert await late.log._rows.append_rows(
            await late.log._rows._events_of(move), {"at": read.at}, read.number
        )
    logged = await rows.count_documents({})
    assert not await late.log._rows.append_changes(changes, read, late.feed.time)
    assert await rows.count_documents({}) == logged
