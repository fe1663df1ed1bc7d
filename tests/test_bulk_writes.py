"""Several updates with one command: each of them succeeds or fails by itself."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pymongo.errors import DuplicateKeyError, WriteError

from service.mongo.bulk_writes import NoMatch, Update, update_each
from service.mongo.client import Collection, Row
from service.store import Store
from tests.checker import agrees
from tests.conftest import Api


@pytest.fixture
async def tags(store: Store) -> Collection:
    tags = store.database["tags"]
    await tags.insert_many([{"_id": id, "version": 1, "slug": f"tag-{id}"} for id in range(1, 7)])
    return tags


def update(id: int, version: int = 1, **fields: Any) -> Update:
    return Update({"_id": id, "version": version}, {"$set": fields, "$inc": {"version": 1}})


async def stored(tags: Collection) -> dict[int, Row]:
    return {row.pop("_id"): row async for row in tags.find({"_id": {"$lt": 100}})}


async def test_updates_that_match_are_applied(tags: Collection) -> None:
    before = await stored(tags)
    assert await update_each(tags, [update(id, name=f"Name {id}") for id in before]) == {}
    assert await stored(tags) == {
        id: row | {"version": 2, "name": f"Name {id}"} for id, row in before.items()
    }


def failing() -> dict[Update, type[Exception]]:
    return {
        update(1, version=2, name="of another version"): NoMatch,
        update(99, name="of a deleted record"): NoMatch,
        update(2, slug="tag-3"): DuplicateKeyError,
        update(4, **{"slug.part": "no field"}): WriteError,
    }


async def test_every_update_that_fails_has_its_own_error(tags: Collection) -> None:
    before, bad = await stored(tags), failing()
    failed = await update_each(tags, [update(5, name="New"), *bad, update(6, name="New")])
    assert {one: type(error) for one, error in failed.items()} == bad
    changed = {id: {"version": 2, "name": "New"} for id in (5, 6)}
    assert await stored(tags) == {id: row | changed.get(id, {}) for id, row in before.items()}


async def test_a_single_update_that_fails_raises_the_same_error(tags: Collection) -> None:
    before = await stored(tags)
    for bad, error in failing().items():
        with pytest.raises(error):
            await update_each(tags, [bad])
    assert await stored(tags) == before


async def test_of_two_updates_of_one_version_the_second_matches_nothing(tags: Collection) -> None:
    twice = [update(1, name="First"), update(1, name="Second")]
    failed = await update_each(tags, twice)
    assert list(failed) == [twice[1]]
    assert isinstance(failed[twice[1]], NoMatch)
    assert (await stored(tags))[1]["name"] == "First"


async def test_updates_of_many_records_by_two_processes(pair: tuple[Api, Api]) -> None:
    """Batches of both contain the same records, so that some updates of each are to be done again."""
    events = [(await pair[0].event(f"Event {at}"))["id"] for at in range(20)]
    names = ("title", "description", "excerpt", "website")
    sent = {(id, name): f"https://example.org/{id}/{name}" for id in events for name in names}
    answers = await asyncio.gather(
        *(
            pair[at % 2].patch(f"/events/{id}", {name: value})
            for at, ((id, name), value) in enumerate(sent.items())
        )
    )
    assert {status for status, _ in answers} == {200}
    shown = {id: (await pair[0].get(f"/events/{id}"))[1] for id in events}
    assert {(id, name): shown[id][name] for id, name in sent} == sent
    rows = pair[0].store.database["events"].find({}, {"version": 1})
    assert {row["version"] async for row in rows} == {1 + len(names)}, "each update is applied once"
    assert pair[0].store.updater.batcher.batches < len(sent) // 2
    await agrees(pair[0].store)


async def test_locked_records_do_not_block_later_updates_of_others(api: Api) -> None:
    ids = [(await api.event(f"Event {at}"))["id"] for at in range(5)]
    locked, others = ids[:2], ids[2:]
    waiting = []
    async with await api.store.client.start_session() as session, session.start_transaction():
        query, change = {"_id": {"$in": locked}}, {"$set": {"other": 1}}
        await api.store.database["events"].update_many(query, change, session=session)
        for id in locked:
            waiting.append(asyncio.create_task(api.patch(f"/events/{id}", {"title": "Locked"})))
            await asyncio.sleep(0.1)  # as many batches as may be in flight
        for id in others:
            assert (await api.patch(f"/events/{id}", {"title": "Other"}))[0] == 200
        assert not any(task.done() for task in waiting)
        await session.abort_transaction()
    assert [status for status, _ in await asyncio.gather(*waiting)] == [200, 200]
