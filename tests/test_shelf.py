"""What is kept rendered is never shown once it is not current, in any process."""

from __future__ import annotations

from typing import Any

import pytest

from handlers.memory import ENTRY_OVERHEAD_BYTES, ByteLru, LruNamespace
from handlers.shelf import FragmentCache
from schemas import EVENT
from schemas.caller import PUBLIC
from schemas.kind import RenderContext
from schemas.site import Site
from service import app
from tests.conftest import MakeApi


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

    async def fetch(self, kind: Any, ids: Any) -> list[dict[str, Any]]:
        return [{"_id": id, "version": 2, "status": "draft", "author": 1} for id in ids]


async def test_a_record_that_was_hidden_meanwhile_is_left_out() -> None:
    found = await FragmentCache(Changing(), ByteLru()).render_list(  # type: ignore[arg-type]
        EVENT, [{"_id": 1, "version": 1}], RenderContext(Site(), PUBLIC)
    )
    assert found == []


async def test_a_page_is_whole_where_little_is_kept(
    make_api: MakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "ByteLru", lambda: ByteLru(20_000))
    api = await make_api()
    for number in range(12):
        await api.event(f"Event {number}", description="x" * 1000)
    for _ in range(2):
        _, page = await api.get("/events", per_page="12")
        assert [event["title"] for event in page["events"]] == [f"Event {number}" for number in range(12)]


def test_a_memory_is_bounded() -> None:
    memory = ByteLru(20_000)
    for number in range(100):
        memory.keep(number % 50, b"x" * 1000, 1000)
    assert (len(memory), memory.size) == (10, 20_000)
    assert memory.take(40) == b"x" * 1000
    assert memory.take(39) is None


def test_drawers_share_a_memory_and_not_their_keys() -> None:
    memory = ByteLru(5 * ENTRY_OVERHEAD_BYTES)
    often, seldom = LruNamespace[str](memory, "often"), LruNamespace[str](memory, "seldom")
    often.keep("a", "asked for often", 0)
    for number in range(10):
        seldom.keep("a", "asked for seldom", 0)
        seldom.keep(number, "asked for once", 0)
        assert often.take("a") == "asked for often"
    assert seldom.take("a") == "asked for seldom"
    assert seldom.take(5) is None
