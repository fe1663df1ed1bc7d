"""What everybody asks for is ready before anybody asks."""

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
from service.serve import ready_app
from service.store import Store, depths, foresight
from service.store.joint import Joint
from service.store.totals import Totals
from tests.checker import until
from tests.conftest import Api


async def test_the_list_of_coming_events_is_counted_once_a_day(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[Any] = []
    count, find = Totals._count, foresight.find_page

    async def count_noted(totals: Totals, key: bytes, conditions: list[Any]) -> Any:
        counted.append("count")
        return await count(totals, key, conditions)

    async def find_noted(*arguments: Any) -> Any:
        counted.append("page")
        return await find(*arguments)

    monkeypatch.setattr(Totals, "_count", count_noted)
    monkeypatch.setattr(foresight, "find_page", find_noted)
    event = await api.event()
    for _ in range(2):
        await api.store.foresee(EVERYBODY)
        assert counted == ["page", "count"]
    assert await api.ids("events") == [event["id"]]
    assert counted == ["page", "count"]
    tomorrow = api.store.site.now() + timedelta(days=1)
    monkeypatch.setattr(Site, "now", lambda _: tomorrow)
    await api.store.foresee(EVERYBODY)
    assert counted == ["page", "count"] * 2


async def test_its_pages_are_near(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(depths, "FAR", 4)
    monkeypatch.setattr(depths, "NEAR", 3)
    monkeypatch.setattr(foresight, "FAR", 4)
    events = [await api.event(f"Event {number}") for number in range(30)]
    await api.store.foresee(EVERYBODY)
    (tally,) = api.store.totals._tallies.values()
    (marks,) = tally.marks.values()
    assert [marks.before(rank).rank for rank in (4, 8, 12)] == [4, 8, 12]
    for page in (1, 2, 3):
        shown = await api.ids("events", per_page="10", page=str(page))
        assert shown == [event["id"] for event in events[10 * page - 10 : 10 * page]]


@pytest.mark.parametrize(("auth", "stranger"), [("", EVERYBODY), ("open", EVERYBODY), ("token", PUBLIC)])
async def test_it_is_the_list_that_callers_without_a_name_see(
    mongodb_uri: str, store: Store, monkeypatch: pytest.MonkeyPatch, auth: str, stranger: Caller
) -> None:
    asked: list[Caller] = []

    async def noted(_: Store, caller: Caller) -> None:
        asked.append(caller)

    monkeypatch.setattr(Store, "foresee", noted)
    settings = replace(Settings(), mongodb_uri=mongodb_uri, database=store.database.name, auth=auth)
    async with AsyncExitStack() as stack:
        await ready_app(settings, stack)

        async def is_asked() -> bool:
            return bool(asked)

        await until(is_asked)
    assert asked == [stranger]


async def test_what_fails_when_nobody_waits_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    """A service may end while it counts."""
    joint, may_fail = Joint[int](), asyncio.Event()

    async def fails() -> int:
        await may_fail.wait()
        raise ValueError

    waiting = asyncio.create_task(joint.do(b"", fails))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    may_fail.set()
    await asyncio.sleep(0.01)
    assert not joint._under_way
    del waiting
    gc.collect()  # a task complains when nobody can ask it any more
    assert not caplog.records
    with pytest.raises(ValueError):
        await joint.do(b"", fails)
