"""Slow calls to MongoDB are logged: with their shape and the request they were made for, without values."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from config import Settings
from config.logs import JsonFormatter
from schemas.site import Site
from service.metrics.commands import CommandMetrics
from service.metrics.slow_calls import shape_of
from service.store import Store, unstarted_store
from tests.conftest import Api, Served
from tests.test_faults import answer_of, running

Fields = dict[str, Any]


@pytest.fixture
def slow(caplog: pytest.LogCaptureFixture) -> Callable[[], list[Fields]]:
    """The members of all lines about slow calls so far, as JSON has them."""
    caplog.set_level(logging.WARNING, "kalends.mongodb")

    def lines() -> list[Fields]:
        records = [record for record in caplog.records if record.name == "kalends.mongodb"]
        return [json.loads(JsonFormatter().format(record)) for record in records]

    return lines


@pytest.fixture
async def all_slow(mongodb_uri: str, store: Store, aiohttp_client: Any) -> AsyncIterator[Api]:
    """A service for which every call is a slow one."""
    listener = CommandMetrics(0.001)
    async with unstarted_store(mongodb_uri, store.database.name, Site(), [listener]) as own:
        own.started = True
        settings = replace(Settings(), max_per_page=50)
        yield Api(await aiohttp_client(Served(settings, own)), own)


async def test_a_slow_call_is_one_line_without_values(
    all_slow: Api, slow: Callable[[], list[Fields]], caplog: pytest.LogCaptureFixture
) -> None:
    await all_slow.store.database["events"].find_one(
        {"title": "secret", "$or": [{"author": 4711}, {"author": 4712}, {"tok": {"$in": [1, 2, 3]}}]}
    )
    (line,) = [line for line in slow() if line["collection"] == "events"]
    assert line["message"].startswith("slow call: find events ")
    assert (line["level"], line["command"], line["documents"], line["request_id"]) == (
        "warning",
        "find",
        0,
        "-",
    )
    shape = json.loads(line["shape"])
    assert shape["filter"] == {"title": "?", "$or": [{"author": "?"}, {"tok": {"$in": ["?"]}}]}
    assert line["milliseconds"] > 0
    assert "secret" not in caplog.text
    assert "471" not in line["shape"]


async def test_a_slow_call_has_the_id_of_its_request(
    all_slow: Api, slow: Callable[[], list[Fields]], caplog: pytest.LogCaptureFixture
) -> None:
    event = await all_slow.event("Hidden title", venue={"venue": "Hidden hall"})
    made = {line["request_id"] for line in slow() if line["command"] == "insert"}
    assert made == {all_slow.headers["X-Request-Id"]}
    caplog.clear()
    for path in (f"/events/{event['id']}", "/events?search=hidden", "/venues"):
        caplog.clear()
        await all_slow.get(path)
        ids = {line["request_id"] for line in slow() if line["command"] in ("find", "aggregate")}
        assert all_slow.headers["X-Request-Id"] in ids, path
        assert "idden" not in caplog.text


async def test_concurrent_requests_are_told_apart(all_slow: Api, slow: Callable[[], list[Fields]]) -> None:
    """A call that is made for several of them has the id of one of them."""
    await all_slow.event()

    async def ask(page: int) -> str:
        path = f"{all_slow.store.site.namespace}/events?per_page={page}"
        async with all_slow.client.get(path) as answer:
            assert answer.status == 200
            return answer.headers["X-Request-Id"]

    before = len(slow())
    ids = set(await asyncio.gather(*map(ask, range(1, 9))))
    found = {line["request_id"] for line in slow()[before:] if line["command"] == "aggregate"}
    assert found <= ids
    assert found


async def test_calls_below_the_limit_are_not_logged(
    mongodb_uri: str, store: Store, slow: Callable[[], list[Fields]]
) -> None:
    for limit, milliseconds in ((0, 600), (500, 1), (500, 600)):
        name = store.database.name
        async with (
            unstarted_store(mongodb_uri, name, Site(), [CommandMetrics(limit)]) as own,
            own.database["tags"].watch(max_await_time_ms=milliseconds) as stream,
        ):
            assert await stream.try_next() is None
    (line,) = [line for line in slow() if line["command"] == "getMore"]
    assert (line["collection"], line["documents"]) == ("tags", 0)


def test_shapes_are_small() -> None:
    assert shape_of({"a": [{"b": 1}] * 1000, "c": [1, "x", {"d": None}]}) == {
        "a": [{"b": "?"}],
        "c": ["?", {"d": "?"}],
    }
    assert len(shape_of({f"field {n}": n for n in range(1000)})) == 20


@pytest.mark.slow
async def test_the_setting_reaches_the_driver_and_every_line_is_json(tmp_path: Path) -> None:
    async with running(tmp_path / "data", SLOW_MS="1", LOG_FORMAT="json") as service:
        await answer_of(f"{service.api}/events?search=hidden")
        service.process.terminate()
        assert await service.end() == 0
    lines = [json.loads(line) for line in service.errors.read_text().splitlines()]
    slow = [line for line in lines if line["logger"] == "kalends.mongodb"]
    assert {"command", "collection", "milliseconds", "documents", "shape", "request_id"} <= slow[0].keys()
    assert "hidden" not in service.errors.read_text()
