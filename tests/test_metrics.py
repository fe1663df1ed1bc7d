"""The metrics of one process: what they count, under which labels, and who may read them."""

from __future__ import annotations

import asyncio
import random
import string
import time
from collections.abc import AsyncIterator
from math import isnan
from typing import Any

import pytest
from bson import Timestamp
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families
from pymongo.errors import OperationFailure

from handlers.editor.cookie import COOKIE
from schemas.site import Site
from service.background import background_task
from service.changes.restores import MARKER
from service.metrics import access, database_state
from service.metrics.commands import CommandMetrics
from service.metrics.requests import METHODS
from service.metrics.sampling import SAMPLER
from service.mongo.write_clock import Clock
from service.store import Store, unstarted_store
from tests.checker import until
from tests.conftest import Api, MakeApi
from tests.scraping import Scrape, scrape
from tests.wire import connected

ROOT = "/calendar/events/v1"
TEXT = "text/plain; version=0.0.4; charset=utf-8"
BY_ROUTE = ("route", "method", "status")


# Requests


async def test_requests_are_counted_by_route_method_and_status(api: Api) -> None:
    event = await api.event()
    before = await scrape(api)
    await api.get("/events")
    await api.get("/events/")
    for id in (event["id"], event["id"], 999):
        await api.get(f"/events/{id}")
    await api.patch(f"/events/{event['id']}", {"title": "New"})
    await api.post("/events", {"title": "Without a date"})
    await api.send("HEAD", "/venues")
    await api.send("DELETE", "/events")
    await api.get("//events/month/")
    await api.get("//nowhere/at/all")
    after = await scrape(api)
    assert after.since(before, "kalends_requests_total", *BY_ROUTE) == {
        (f"{ROOT}/events", "GET", "200"): 2,
        (f"{ROOT}/events/{{id}}", "GET", "200"): 2,
        (f"{ROOT}/events/{{id}}", "GET", "404"): 1,
        (f"{ROOT}/events/{{id}}", "PATCH", "200"): 1,
        (f"{ROOT}/events", "POST", "400"): 1,
        (f"{ROOT}/venues", "HEAD", "200"): 1,
        ("unmatched", "DELETE", "405"): 1,
        ("/events/{view}", "GET", "200"): 1,
        ("unmatched", "GET", "404"): 1,
        ("/metrics", "GET", "200"): 1,
    }
    timed = after.since(before, "kalends_request_duration_seconds_count", "route", "method")
    assert timed[f"{ROOT}/events/{{id}}", "GET"] == 3
    seconds = after.since(before, "kalends_request_duration_seconds_sum", "route", "method")
    assert seconds.keys() == timed.keys()
    assert min(seconds.values()) > 0


async def test_what_aiohttp_refuses_is_counted(api: Api) -> None:
    before = await scrape(api)
    assert api.client.port
    for sent in (b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\nExpect: tea\r\n\r\n"):
        async with connected(api.client.port) as wire:
            await wire.send(sent)
            await wire.answer()
            await wire.ends()

    async def are_counted() -> bool:  # that is done after the response was sent
        counted = (await scrape(api)).since(before, "kalends_requests_total", "route", "status")
        return (counted.get(("unmatched", "400")), counted.get(("unmatched", "417"))) == (1, 1)

    await until(are_counted)


async def test_no_path_and_no_method_makes_a_label(api: Api) -> None:
    chance = random.Random(7)

    def word() -> str:
        return "".join(chance.choices(string.ascii_uppercase, k=8))

    before = await scrape(api)
    await api.get("/events/1")
    routes = {resource.canonical.rstrip("/") or "/" for resource in api.client.app.router.resources()}  # type: ignore[union-attr]
    for _ in range(500):
        await api.send("GET", f"//{word()}/{word()}")
        await api.send(word(), f"/events/{chance.randrange(10**6)}")
    seen = (await scrape(api)).since(before, "kalends_requests_total", *BY_ROUTE)
    assert {route for route, _, _ in seen} <= routes | {"unmatched"}
    assert {method for _, method, _ in seen} <= METHODS | {"other"}
    assert seen["unmatched", "other", "405"] >= 500


async def test_requests_above_the_limit_are_counted_and_the_metrics_still_answer(make_api: MakeApi) -> None:
    api = await make_api(max_concurrent=1, rate_limit=3)
    assert api.client.port
    before = await scrape(api)
    async with connected(api.client.port) as wire:
        body = await wire.begin(f"{ROOT}/tags", {"name": "Slow"})
        assert (await api.get("/events"))[0] == 503
        during = await scrape(api)
        await wire.send(body)
        assert (await wire.answer()).status == 201
    assert during.since(before, "kalends_requests_shed_total") == {(): 1}
    assert during.value("kalends_requests_in_flight", state="handled") == 2, "one waits, and the scrape"
    for _ in range(5):
        await scrape(api)
    assert "RateLimit-Limit" not in api.headers


# Caches, batches and the database


async def test_caches_tell_hits_from_misses(api: Api) -> None:
    event = await api.event(categories=["Jazz"])
    await api.event(categories=["Jazz"])
    await api.get("/categories")
    before = await scrape(api)
    for _ in range(3):
        await api.get("/events", categories="jazz", start_date="2027-01-01")
        await api.get(f"/events/{event['id']}")
    after = await scrape(api)
    hits = after.since(before, "kalends_cache_hits_total", "cache")
    misses = after.since(before, "kalends_cache_misses_total", "cache")
    for cache in ("pages", "records"):
        assert (hits[cache,], misses[cache,]) == (2, 1), cache
    assert misses["fragments",] == 2
    assert misses["filters",] == 1


async def test_batches_count_their_calls(api: Api) -> None:
    before = await scrape(api)
    events = await asyncio.gather(*(api.event(f"Event {n}") for n in range(20)))
    await asyncio.gather(*(api.patch(f"/events/{one['id']}", {"description": "New"}) for one in events))
    after = await scrape(api)
    for batch in ("creations", "updates"):
        assert after.since(before, "kalends_batched_calls_total", "batch")[batch,] == 20
        assert 1 <= after.since(before, "kalends_batches_total", "batch")[batch,] < 20
        assert after.value("kalends_batch_queue_length", batch=batch) == 0


@pytest.fixture
async def heard(mongodb_uri: str, store: Store) -> AsyncIterator[Store]:
    """A store whose commands are counted."""
    async with unstarted_store(mongodb_uri, store.database.name, Site(), [CommandMetrics(0)]) as one:
        one.started = True
        yield one


async def test_commands_are_counted_by_name_and_collection(api: Api, heard: Store) -> None:
    before = await scrape(api)
    await heard.database["tags"].find_one({"_id": 1})
    await heard.database["tags"].find_one({"_id": 2})
    await heard.database["venues"].insert_one({"_id": 1})
    with pytest.raises(OperationFailure):
        await heard.database["tags"].find_one({"$nonsense": 1})
    after = await scrape(api)
    counted = after.since(before, "kalends_mongodb_command_duration_seconds_count", "command", "collection")
    assert {key: value for key, value in counted.items() if key[1]} == {
        ("find", "tags"): 3,
        ("insert", "venues"): 1,
    }
    failures = after.since(before, "kalends_mongodb_command_failures_total", "command", "collection")
    assert failures == {("find", "tags"): 1}


async def test_open_jobs_and_the_lag_of_the_change_feed(api: Api) -> None:
    store = api.store
    await store.database["fanout_jobs"].insert_many([{"_id": f"venue:{n}"} for n in range(3)])
    jobs, lag = await database_state.read_state(store)
    assert jobs == 3
    assert isnan(lag), "nothing was read yet"
    await store.feed.catch_up()
    assert (await database_state.read_state(store))[1] <= 1
    store.feed.time = Timestamp(store.feed.time.time - 100, 1)
    assert (await database_state.read_state(store))[1] >= 100


async def test_the_state_of_the_database_is_kept_current(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_state, "LOOK_SECONDS", 0.05)
    await api.store.database["fanout_jobs"].insert_one({"_id": "venue:1"})

    async def shows_a_job() -> bool:
        return (await scrape(api)).value("kalends_fanout_jobs_open") == 1

    async with background_task(database_state.observe_database(api.store)):
        await until(shows_a_job)
    assert (await scrape(api)).value("kalends_mongodb_up") == 1


async def test_a_failure_that_nobody_expects_does_not_end_the_metrics(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(database_state, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr("service.metrics.sampling.SAMPLE_SECONDS", 0.01)
    sampler, calls = api.client.app[SAMPLER], list[str]()  # type: ignore[index]

    def broken(name: str, result: Any) -> Any:
        calls.append(name)
        if calls.count(name) < 3:
            raise KeyError(name)
        return result

    async def state(store: Store) -> tuple[float, float]:
        return broken("state", (0.0, 0.0))  # type: ignore[no-any-return]

    async def went_on() -> bool:
        return min(calls.count("state"), calls.count("sample")) > 3

    monkeypatch.setattr(database_state, "read_state", state)
    monkeypatch.setattr(sampler, "sample", lambda: broken("sample", None))
    async with background_task(database_state.observe_database(api.store)), background_task(sampler.run()):
        await until(went_on)
    logged = sorted(record.getMessage() for record in caplog.records if record.exc_info)
    assert logged == [
        "reading the state of MongoDB failed; retrying",
        "sampling the metrics failed; retrying",
    ]


async def test_a_blocked_event_loop_is_seen(api: Api) -> None:
    before = await scrape(api)
    async with background_task(api.client.app[SAMPLER].run()):  # type: ignore[index]
        await asyncio.sleep(0)
        time.sleep(1)

        async def is_observed() -> bool:
            return bool((await scrape(api)).since(before, "kalends_event_loop_delay_seconds_count"))

        await until(is_observed)
    (late,) = (await scrape(api)).since(before, "kalends_event_loop_delay_seconds_sum").values()
    assert late >= 0.4, "it was to wake up after half a second"


# Formats and access


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", TEXT),
        ("text/html", TEXT),
        ("application/openmetrics-text; version=1.0.0", "application/openmetrics-text; version=1.0.0; "),
        ("application/openmetrics-text; version=nonsense", TEXT),
        ("text/plain; version=x.y", TEXT),
    ],
)
async def test_the_format_is_negotiated(api: Api, accept: str, content_type: str) -> None:
    status, text = await api.send("GET", "//metrics", headers={"Accept": accept})
    assert status == 200
    assert api.headers["Content-Type"].startswith(content_type)
    if "openmetrics" in content_type:
        assert list(open_families(text))
    else:
        assert Scrape(text).families


async def test_the_metrics_are_neither_a_page_nor_for_other_sites(roles: dict[str, Api]) -> None:
    viewer = roles["viewer"]
    headers = {"Accept": "text/html", "Origin": "https://other.example"}
    assert (await viewer.send("GET", "//metrics", headers=headers))[0] == 200
    assert "Access-Control-Allow-Origin" not in viewer.headers
    status, body = await roles["public"].send("GET", "//metrics", headers=headers)
    assert (status, body["code"]) == (401, "rest_forbidden")
    assert roles["public"].headers["WWW-Authenticate"].startswith("Bearer")
    cookie = {"Cookie": f"{COOKIE}={roles['admin'].token}"}
    assert (await roles["public"].send("GET", "//metrics", headers=cookie))[0] == 401
    assert (await viewer.post("//metrics", {}))[0] == 405


async def test_any_token_reads_the_metrics(roles: dict[str, Api]) -> None:
    for name, api in roles.items():
        assert (await api.get("//metrics"))[0] == (401 if name == "public" else 200), name
    wrong = {"Authorization": "Bearer wrong"}
    assert (await roles["public"].send("GET", "//metrics", headers=wrong))[0] == 401


async def test_in_open_mode_everybody_reads_them_but_not_with_a_wrong_token(api: Api) -> None:
    assert (await api.get("//metrics"))[0] == 200
    assert (await api.send("GET", "//metrics", headers={"Authorization": "Bearer wrong"}))[0] == 401


async def test_a_revoked_token_does_not_read_them(roles: dict[str, Api], store: Store) -> None:
    issued: Any = await store.tokens.list()
    assert (await roles["viewer"].get("//metrics"))[0] == 200
    for token in issued:
        await store.tokens.revoke(token["_id"])

    async def is_refused() -> bool:
        return (await roles["viewer"].get("//metrics"))[0] == 401

    await until(is_refused)


async def test_during_a_restore_a_token_that_was_accepted_before_reads_them(
    roles: dict[str, Api], store: Store
) -> None:
    assert (await roles["viewer"].get("//metrics"))[0] == 200
    await store.database["meta"].insert_one({"_id": MARKER})
    try:

        async def is_noticed() -> bool:
            return (await roles["viewer"].get("/events"))[0] == 503

        await until(is_noticed)
        roles["public"].store.tokens.forget()
        assert (await roles["viewer"].get("//metrics"))[0] == 200
        assert (await roles["editor"].get("//metrics"))[0] == 503, "this token was not accepted before"
    finally:
        await store.database["meta"].delete_one({"_id": MARKER})


async def test_a_scrape_that_gives_up_does_not_end_what_others_wait_for(
    roles: dict[str, Api], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests that come together are served by one read of the change feed."""
    viewer, store = roles["viewer"], roles["public"].store
    assert (await viewer.get("/events"))[0] == 200
    read, may_go_on, batcher = store.feed.clock.read, asyncio.Event(), store.feed.batcher

    def write() -> None:
        store.database.delegate["meta"].update_one({"_id": "x"}, {"$inc": {"y": 1}}, upsert=True)

    async def slow() -> Clock:
        await may_go_on.wait()
        await asyncio.get_running_loop().run_in_executor(None, write)
        return await read()

    monkeypatch.setattr(store.feed.clock, "read", slow)
    monkeypatch.setattr(access, "MAX_WAIT_SECONDS", 0.1)
    store.feed.restores.read_at = 0.0
    calls = batcher.calls
    first = asyncio.create_task(viewer.get("/events"))
    while batcher.calls == calls or batcher.waiting:
        await asyncio.sleep(0.01)
    assert (await roles["editor"].get("//metrics"))[0] == 503
    second = asyncio.create_task(roles["public"].get("/events"))
    while batcher.waiting < 2:
        await asyncio.sleep(0.01)
    may_go_on.set()
    assert [(await task)[0] for task in (first, second)] == [200, 200]
