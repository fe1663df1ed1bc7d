"""The default list of events is counted before anybody asks for it."""

from __future__ import annotations

import asyncio
import gc
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from config import Settings
from schemas.caller import EVERYBODY, PUBLIC, Caller
from schemas.site import Site
from service.mongo.coalescing import SingleFlight
from service.process.serve import ready_app
from service.store import Store
from service.store.lists import totals
from service.store.lists.pages import Lists
from service.store.lists.query import ListQuery
from service.store.lists.totals import LiveHistogram, Totals
from tests.checker import until
from tests.conftest import Api


async def test_a_long_default_list_has_its_histogram_before_the_first_request(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(totals, "MAX_COUNTED", 2)
    monkeypatch.setattr(totals, "MAX_COUNTED_FIRST", 2)
    built: list[Any] = []
    build = Totals._build

    async def noted(totals: Totals, asked: ListQuery) -> LiveHistogram:
        built.append(asked)
        return await build(totals, asked)

    monkeypatch.setattr(Totals, "_build", noted)
    for number in range(3):
        await api.event(f"Event {number}")
    for _ in range(2):
        await api.store.lists.warm(EVERYBODY)
        assert len(built) == 1
    assert (await api.get("/events"))[1]["total"] == 3
    assert len(built) == 1
    await api.store.feed.close()
    tomorrow = api.store.site.now() + timedelta(days=1)
    monkeypatch.setattr(Site, "now", lambda _: tomorrow)
    await api.store.lists.warm(EVERYBODY)
    assert len(built) == 2, "it was lost, and is built again once a day"


@pytest.mark.parametrize(("auth", "stranger"), [("", EVERYBODY), ("open", EVERYBODY), ("token", PUBLIC)])
async def test_it_is_the_list_that_anonymous_callers_see(
    mongodb_uri: str, store: Store, monkeypatch: pytest.MonkeyPatch, auth: str, stranger: Caller
) -> None:
    asked: list[Caller] = []

    async def noted(_: Lists, caller: Caller) -> None:
        asked.append(caller)

    monkeypatch.setattr(Lists, "warm", noted)
    settings = replace(Settings(), mongodb_uri=mongodb_uri, database=store.database.name, auth=auth)
    async with AsyncExitStack() as stack:
        await ready_app(settings, stack)

        async def is_asked() -> bool:
            return bool(asked)

        await until(is_asked)
    assert asked == [stranger]


async def test_a_failure_that_nobody_waits_for_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    """A service may end while it counts."""
    flight, may_fail = SingleFlight[bytes, int](), asyncio.Event()

    async def fails() -> int:
        await may_fail.wait()
        raise ValueError

    waiting = asyncio.create_task(flight.run(b"", fails))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    may_fail.set()
    await asyncio.sleep(0.01)
    assert not flight._running
    del waiting
    gc.collect()  # a task complains when nobody can ask it any more
    assert not caplog.records
    with pytest.raises(ValueError):
        await flight.run(b"", fails)
