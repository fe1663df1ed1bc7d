"""What is kept rendered is never shown once it is not current, in any process."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

import pytest

from handlers.responses.cache import ENTRY_BYTES, ByteCache, FragmentCache
from schemas import EVENT
from schemas.caller import PUBLIC
from schemas.kind import RenderContext
from schemas.site import Site
from service import app
from tests.conftest import Api, MakeApi


async def test_a_write_through_one_process_is_read_through_another(make_api: MakeApi) -> None:
    here, there = await make_api(), await make_api()
    venue = await here.made("venues", venue="Hall 0")
    event = await here.event("Event 0", venue=venue["id"], tags=["tag"])
    tag = event["tags"][0]["id"]
    paths = (f"/events/{event['id']}", f"/events/by-slug/{event['slug']}")
    for number in range(1, 13):
        writer, reader = (here, there) if number % 2 else (there, here)
        await writer.patch(f"/venues/{venue['id']}", {"venue": f"Hall {number}"})
        await writer.patch(f"/events/{event['id']}", {"title": f"Event {number}"})
        shown = [(await reader.get(path))[1] for path in paths]
        shown += (await reader.get("/events", include=str(event["id"])))[1]["events"]
        assert [one["title"] for one in shown] == [f"Event {number}"] * 3
        assert [one["venue"]["venue"] for one in shown] == [f"Hall {number}"] * 3
        await writer.event(f"Other {number}", tags=[tag], status="draft" if number % 3 else "publish")
        assert (await reader.get(f"/tags/{tag}"))[1]["count"] == 1 + number // 3
        assert (await reader.get("/tags"))[1]["tags"][0]["count"] == 1 + number // 3


async def test_each_caller_sees_their_own_rendering(roles: dict[str, Any]) -> None:
    hidden = await roles["editor"].made("venues", venue="Hidden hall", status="draft")
    event = await roles["editor"].event(venue=hidden["id"], password="s3cret", description="zebra")
    path = f"/events/{event['id']}"
    for _ in range(2):  # the second time from what is kept
        assert (await roles["editor"].get(path))[1]["venue"]["venue"] == "Hidden hall"
        assert (await roles["public"].get(path))[0] == 403
        assert (await roles["public"].get(path, password="s3cret"))[1]["venue"] == []
        for role, words in (("public", ""), ("author", ""), ("viewer", ""), ("editor", "zebra")):
            _, page = await roles[role].get("/events")
            assert page["events"][0]["description"] == words, role


class Changing:
    """A store whose record is hidden between being found and being fetched."""

    site = Site()

    async def find_many(self, kind: Any, ids: Any) -> list[dict[str, Any]]:
        return [{"_id": id, "version": 2, "status": "draft", "author": 1} for id in ids]


async def test_a_record_that_was_hidden_meanwhile_is_left_out() -> None:
    found = await FragmentCache(Changing(), ByteCache(100_000)).render_list(  # type: ignore[arg-type]
        EVENT, [{"_id": 1, "version": 1}], RenderContext(Site(), PUBLIC)
    )
    assert found == []


async def test_a_page_is_whole_where_little_is_kept(
    make_api: MakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "ByteCache", lambda _: ByteCache(20_000))
    api = await make_api()
    for number in range(12):
        await api.event(f"Event {number}", description="x" * 1000)
    for _ in range(2):
        _, page = await api.get("/events", per_page="12")
        assert [event["title"] for event in page["events"]] == [f"Event {number}" for number in range(12)]


def test_the_cache_is_bounded() -> None:
    cache = ByteCache(20_000)
    for number in range(100):
        cache.keep(b"x" * 1000, 1000, number % 50)
    assert (len(cache), cache.currsize) == (10, 20_000)
    assert cache.take(40) == b"x" * 1000
    assert cache.take(39) is None
    cache.keep(b"", 20_000, "too large")
    assert cache.take("too large") is None
    assert len(cache) == 10


def test_what_is_used_often_is_kept() -> None:
    cache = ByteCache(5 * ENTRY_BYTES)
    cache.keep("asked for often", 0, "often", "a")
    for number in range(10):
        cache.keep("asked for seldom", 0, "seldom", "a")
        cache.keep("asked for once", 0, "seldom", number)
        assert cache.take("often", "a") == "asked for often"
    assert cache.take("seldom", "a") == "asked for seldom"
    assert cache.take("seldom", 5) is None


async def test_a_response_in_the_making_is_shared_only_if_nothing_has_changed(
    pair: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks after a write was acknowledged does not get what was read before it."""
    api, writer = pair
    await api.event("First")
    await api.store.feed.catch_up()
    started, may_end, reads = asyncio.Event(), asyncio.Event(), []
    page = api.store.page

    async def slow(*asked: Any) -> Any:
        reads.append(asked)
        found = await page(*asked)
        started.set()
        if len(reads) == 1:
            await may_end.wait()
        return found

    monkeypatch.setattr(api.store, "page", slow)
    first = asyncio.create_task(api.client.get(f"{api.store.site.namespace}/events"))
    await started.wait()
    same = asyncio.create_task(api.client.get(f"{api.store.site.namespace}/events"))
    await asyncio.sleep(0.05)
    assert len(reads) == 1, "shared"
    await writer.event("Second")
    assert (await api.get("/events"))[1]["total"] == 2
    may_end.set()
    assert [(await (await one).json())["total"] for one in (first, same)] == [1, 1]
    assert (await api.get("/events"))[1]["total"] == 2


async def test_a_request_after_midnight_does_not_share_the_response_to_one_before(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    await api.event("Today", start_date="2027-06-01 10:00", end_date="2027-06-01 12:00")
    clock, find = [datetime(2027, 6, 1, 23, 59, 59)], api.store.page
    monkeypatch.setattr(Site, "now", lambda site: clock[0])
    found, sent = asyncio.Event(), asyncio.Event()

    async def find_slowly(*asked: Any) -> Any:
        page = await find(*asked)
        found.set()
        await sent.wait()
        return page

    monkeypatch.setattr(api.store, "page", find_slowly)
    await api.store.feed.catch_up()
    path = f"{api.store.site.namespace}/events"
    before = asyncio.create_task(api.client.get(path))
    await found.wait()
    clock[0] = datetime(2027, 6, 2, 0, 0, 3)
    after = asyncio.create_task(api.client.get(path))
    await asyncio.sleep(0.2)
    sent.set()
    assert [(await (await one).json())["total"] for one in (before, after)] == [1, 0]
