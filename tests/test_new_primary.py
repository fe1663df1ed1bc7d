"""Reads that go to a new primary: before it commits a write of its own, acknowledged ones may be missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from motor.motor_asyncio import AsyncIOMotorCollection

from schemas import EVENT, VENUE
from schemas.caller import Role
from service.mongo.loaders import RecordLoader
from service.search import Vocabulary
from service.store.links import category_tree
from service.store.records.slugs import Slugs
from tests.checker import differences
from tests.conftest import Api
from tests.test_change_feed import pretend_election

Pair = tuple[Api, Api]


async def test_events_of_a_record_that_is_missing_at_first_are_counted(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, load, stale = api.store, RecordLoader.load_many, [True]
    with monkeypatch.context() as paused:
        paused.setattr(store.log, "update_soon", lambda: None)
        await api.event("Fair", venue={"venue": "Hall"}, tags=["music"])

    async def nothing_at_first(loader: RecordLoader, asked: Any) -> Any:
        if not stale:
            return await load(loader, asked)
        stale.pop()
        pretend_election(store.feed)
        return {}

    monkeypatch.setattr(RecordLoader, "load_many", nothing_at_first)
    await store.log.update()
    assert await differences(store) == []


async def test_a_word_that_is_missing_at_first_gets_no_other_number(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = pair
    await two.event("Zebra")
    stored, stale = Vocabulary._stored, [True, True]  # before the insertion, which is refused, and after it

    async def nothing_at_first(self: Vocabulary, words: list[str]) -> dict[str, int]:
        return {} if stale and stale.pop() else await stored(self, words)

    monkeypatch.setattr(Vocabulary, "_stored", nothing_at_first)
    body = {"title": "Zebra", "start_date": "2027-06-01", "end_date": "2027-06-01"}
    assert [(await one.post("/events", body))[0] for _ in range(2)] == [503, 201]
    assert len(await two.ids("events", search="zebra")) == 2


async def test_a_deleted_tag_that_is_there_at_first_may_be_created_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    api, other = pair
    tag = await other.made("tags", name="Rock")
    assert (await other.delete(f"/tags/{tag['id']}"))[0] == 200
    find, stale = category_tree.find, [{"_id": tag["id"], "key": "rock", "parent": 0}]

    async def find_it_at_first(*asked: Any) -> Any:
        if not stale:
            return await find(*asked)
        pretend_election(api.store.feed)
        return [stale.pop()]

    monkeypatch.setattr(category_tree, "find", find_it_at_first)
    assert (await api.post("/tags", {"name": "Rock"}))[0] == 201
    assert not stale


async def test_a_slug_that_is_taken_at_first_may_be_used(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    api, other = pair
    event = await other.event("Fair", slug="fair")
    assert (await other.patch(f"/events/{event['id']}", {"slug": "market"}))[0] == 200
    await api.get("/events")
    stored, stale = Slugs.stored, [{"fair"}]

    async def taken_at_first(slugs: Slugs, *asked: Any) -> Any:
        if not stale:
            return await stored(slugs, *asked)
        pretend_election(api.store.feed)
        return stale.pop()

    monkeypatch.setattr(Slugs, "stored", taken_at_first)
    body = {"title": "Fair", "slug": "fair", "start_date": "2027-06-01", "end_date": "2027-06-01"}
    assert (await api.post("/events", body, headers={"If-None-Match": "*"}))[0] == 201
    assert not stale


@pytest.fixture
def missing_at_first(api: Api, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """Names a collection in which the next look-up finds nothing, as on a new primary; what it returns is
    empty afterwards."""

    def hide(name: str) -> list[str]:
        hidden, find = [name], AsyncIOMotorCollection.find_one

        async def stale(collection: Any, *asked: Any, **options: Any) -> Any:
            if collection.name not in hidden:
                return await find(collection, *asked, **options)
            hidden.remove(collection.name)
            pretend_election(api.store.feed)
            return None

        monkeypatch.setattr(AsyncIOMotorCollection, "find_one", stale)
        return hidden

    return hide


async def test_copies_of_a_record_that_is_missing_at_first_are_kept(
    api: Api, missing_at_first: Callable[[str], list[str]]
) -> None:
    venue = await api.made("venues", venue="Hall")
    event = await api.event("Event", venue=venue["id"])
    await api.store.feed.catch_up()
    hidden = missing_at_first("venues")
    await api.store.fanout.update_copies(VENUE, venue["id"])
    assert not hidden
    assert (await api.get(f"/events/{event['id']}"))[1]["venue"]["venue"] == "Hall"


async def test_a_token_that_is_missing_at_first_is_accepted(
    api: Api, missing_at_first: Callable[[str], list[str]]
) -> None:
    token = await api.store.tokens.create("Laptop", Role.EDITOR)
    await api.store.feed.catch_up()
    hidden = missing_at_first("tokens")
    assert (await api.send("GET", "/events", headers={"Authorization": f"Bearer {token}"}))[0] == 200
    assert not hidden


async def test_an_undo_step_that_is_missing_at_first_is_found(
    api: Api, missing_at_first: Callable[[str], list[str]]
) -> None:
    record = await api.store.find(EVENT, (await api.event())["id"])
    key = await api.store.undo.keep(EVENT, record, {"title": "Before"}, {})
    await api.store.feed.catch_up()
    hidden = missing_at_first("undo")
    step = await api.store.undo.find(EVENT, record["_id"], key)
    assert step
    assert step["values"] == {"title": "Before"}
    assert not hidden
