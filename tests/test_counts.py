"""Counts and last ends are right when they are shown, whoever writes, counts or dies at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, timedelta
from typing import Any

import pytest
from bson import ObjectId
from pymongo.errors import AutoReconnect

from schemas import EVENT, KINDS, TAG, Kind
from schemas.caller import EVERYBODY
from schemas.errors import NotFound
from schemas.kind import load
from schemas.site import Site
from service.store import counts, debts
from service.store.counts import MANY
from service.store.debts import PLAN, Debt, Note, State
from service.store.links.fanout import FIELD, copy_of
from tests.checker import agrees, differences, until
from tests.conftest import Api
from tests.samples import named

Pair = tuple[Api, Api]
NOTHING: State = (False, False, None)
PUBLIC: State = (True, True, None)
LINKS: dict[str, Any] = {
    "venue": {"venue": "Hall"},
    "organizer": {"organizer": "Club"},
    "tags": ["t"],
    "categories": ["c"],
}
STEPS: dict[str, dict[str, Any]] = {
    "links": {"venue": {"venue": "Other"}, "organizer": [], "tags": ["new"], "categories": ["also new"]},
    "later": {"start_date": "2028-01-01 10:00:00", "end_date": "2028-01-01 12:00:00"},
    "earlier": {"start_date": "2026-01-01 10:00:00", "end_date": "2026-01-01 12:00:00"},
    "drafted": {"status": "draft"},
    "trashed": {"status": "trash"},
}


class Died(Exception):
    """Stands for the end of a process: nothing after it is done."""


def held_up(
    monkeypatch: pytest.MonkeyPatch, api: Api, step: str, meanwhile: Callable[[], Awaitable[Any]]
) -> None:
    """Lets something happen once, just before a process takes a step of its counting."""
    counting = api.store.counts
    of: Any = {"begin": counting.debts, "refresh": api.store.fanout}.get(step, counting)
    take, waiting = getattr(of, step), [meanwhile]

    async def later(*arguments: Any) -> Any:
        if waiting:
            await waiting.pop()()
        return await take(*arguments)

    monkeypatch.setattr(of, step, later)


async def counted_by(api: Api, count: Callable[[], Awaitable[Any]]) -> None:
    await count()
    await api.store.counts.catch_up()


# What is shown


async def test_another_process_shows_the_count_at_once(pair: Pair) -> None:
    tag = await pair[0].made("tags", name="tag")
    venue = await pair[0].made("venues", venue="Hall")
    for number in range(1, 5):
        event = await pair[0].event(f"Event {number}", tags=[tag["id"]], venue=[venue["id"]])
        assert (await pair[1].get(f"/tags/{tag['id']}"))[1]["count"] == number
        assert [one["count"] for one in (await pair[1].get("/tags"))[1]["tags"]] == [number]
        assert await pair[1].ids("venues", has_events="1") == [venue["id"]]
    assert (await pair[1].patch(f"/events/{event['id']}", {"tags": []}))[0] == 200
    assert (await pair[0].patch(f"/tags/{tag['id']}", {"description": "Less"}))[1]["count"] == 3


async def test_what_is_noted_is_counted_also_if_nobody_asks(api: Api) -> None:
    """By a sweep now and then, and sooner where much is noted."""
    events = [api.event(f"Event {n}", tags=[f"tag {n % 3}"]) for n in range(20)]
    await asyncio.gather(*events)
    await api.store.maintain()
    assert await differences(api.store) == []
    await asyncio.gather(*(api.event(f"More {n}", tags=["tag 1"]) for n in range(MANY + 20)))

    async def is_counted() -> bool:
        found = await api.store.database["tags"].find_one({"name": "tag 1"})
        return bool(found and found["events"]["publish"] > MANY / 2)

    await until(is_counted)


# Notes


async def test_a_creation_that_was_tried_again_is_counted_once(pair: Pair) -> None:
    """Equal titles ask for one slug; all but the first are refused, and noted again."""
    await pair[0].made("tags", name="tag")
    await asyncio.gather(*(pair[n % 2].event("Same", tags=["tag"]) for n in range(12)))
    assert [one["count"] for one in (await pair[0].get("/tags"))[1]["tags"]] == [12]
    await agrees(pair[0].store)


async def late_event(api: Api, tag: Any, id: int) -> tuple[dict[str, Any], Debt]:
    """An event with a tag, as it will be stored, and what there will be to count."""
    database = api.store.database
    model = await database["events"].find_one({"_id": (await api.event(tags=["other"]))["id"]})
    stored = await database["tags"].find_one({"_id": tag["id"]})
    assert model is not None
    assert stored is not None
    debt = tagging(id, tag)
    row = model | {"_id": id, "slug": f"late-{id}", "debt": debt.mark, "tags": [copy_of(TAG, stored)]}
    return row, debt


def tagging(event: int, tag: Any) -> Debt:
    return Debt(event, 1, {(FIELD["tag"], tag["id"]): (NOTHING, PUBLIC)})


async def test_an_event_that_is_written_long_after_its_note_is_counted(api: Api) -> None:
    """Its process died, but the write was on its way; of two that were noted together, one came sooner."""
    tag, database = await api.made("tags", name="late"), api.store.database
    late = [await late_event(api, tag, id) for id in (100_000, 100_001)]
    await database["debts"].insert_one(Note(ObjectId(), [debt for _, debt in late]).document())
    for number, (row, _) in enumerate(late):
        await api.store.maintain()
        assert (await api.get(f"/tags/{tag['id']}"))[1]["count"] == number
        await database["events"].insert_one(row)
    assert (await api.get(f"/tags/{tag['id']}"))[1]["count"] == 2
    await agrees(api.store)


async def test_what_is_too_much_for_one_plan_is_counted_in_parts(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "LARGEST", 7)
    monkeypatch.setattr(debts, "LARGEST", 2)
    made = await asyncio.gather(*(api.event(f"Event {n}", **LINKS) for n in range(12)))
    await asyncio.gather(*(api.delete(f"/events/{event['id']}") for event in made[:4]))
    await api.store.counts.catch_up()
    assert await differences(api.store) == []


async def test_the_note_of_an_event_that_was_never_written_goes_in_the_end(api: Api) -> None:
    notes, now = api.store.database["debts"], api.store.site.now().replace(tzinfo=UTC)
    for minutes, left in ((1, 1), (59, 2), (61, 2)):
        id = ObjectId.from_datetime(now - timedelta(minutes=minutes))
        await notes.insert_one(Note(id, [tagging(999, {"id": 1})]).document())
        await api.store.maintain()
        assert await notes.count_documents({"_id": {"$ne": PLAN}}) == left


# Processes that die


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("command", range(7))
async def test_counts_are_made_good_after_a_death(
    pair: Pair, step: str, command: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies somewhere on its way through what it writes to count."""
    event = await pair[0].event(**LINKS)
    await pair[0].event(**LINKS)
    await pair[0].store.update(
        EVENT, event["id"], load(EVENT.body_schema, STEPS[step], Site(), partial=True), EVERYBODY
    )
    left = iter(range(command))

    def dying(write: Callable[..., Any]) -> Callable[..., Any]:
        async def one(*arguments: Any, **options: Any) -> Any:
            if next(left, None) is None:
                raise Died
            return await write(*arguments, **options)

        return one

    dead = pair[0].store.counts
    monkeypatch.setattr(dead.debts, "begin", dying(dead.debts.begin))
    monkeypatch.setattr(dead.debts, "end", dying(dead.debts.end))
    monkeypatch.setattr(dead.debts, "take", dying(dead.debts.take))
    monkeypatch.setattr(dead, "_collection", lambda field: Dying(collection(field), dying))
    collection = type(dead)._collection.__get__(dead)
    with suppress(Died):
        await dead.catch_up()
    await pair[1].store.maintain()
    assert await differences(pair[1].store) == []


class Dying:
    """A collection whose process may die at its next bulk of writes."""

    def __init__(self, collection: Any, dying: Callable[[Any], Any]) -> None:
        self.bulk_write = dying(collection.bulk_write)


async def test_an_event_that_was_written_is_acknowledged_whatever_fails_afterwards(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that is told to try again would make it twice."""

    async def fails(*arguments: Any) -> None:
        raise AutoReconnect("connection closed")

    monkeypatch.setattr(pair[0].store.fanout, "refresh", fails)
    event = await pair[0].event(tags=["tag"])
    assert (await pair[0].patch(f"/events/{event['id']}", {"tags": ["other"]}))[0] == 200
    await pair[1].store.maintain()
    assert await differences(pair[1].store) == []


@pytest.mark.parametrize("error", [AutoReconnect("connection closed"), NotFound(kind="event")], ids=repr)
async def test_an_event_that_cannot_be_read_again_is_acknowledged_as_written(
    api: Api, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A primary that has just been elected may not show it yet."""

    async def has_changed(events: Any) -> set[int]:
        return {event["_id"] for event in events}

    async def fails(*arguments: Any) -> None:
        raise error

    monkeypatch.setattr(api.store.fanout, "refresh", has_changed)
    monkeypatch.setattr(api.store, "find", fails)
    body = {
        "title": "Event",
        "start_date": "2027-06-01",
        "end_date": "2027-06-01",
        "venue": {"venue": "Hall"},
    }
    status, event = await api.post("/events", body)
    assert (status, event["title"]) == (201, "Event")


# Several who count


@pytest.mark.parametrize("step", ["_planned", "begin", "_carry_out"])
async def test_two_who_count_at_the_same_time_count_once(
    pair: Pair, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held_up(monkeypatch, pair[0], step, pair[1].store.counts.catch_up)
    await pair[0].event(**LINKS)
    await pair[0].store.counts.catch_up()
    assert await differences(pair[0].store) == []


@pytest.mark.parametrize("step", ["_planned", "_events", "refresh", "_steps", "begin", "_carry_out"])
async def test_the_last_end_is_right_when_an_event_is_trashed_while_it_is_counted(
    pair: Pair, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    venue = await pair[0].made("venues", venue="Hall")
    await pair[0].event(venue=[venue["id"]])
    await pair[0].event("Last", venue=[venue["id"]], end_date="2029-01-01 00:00:00")

    async def trashed() -> None:
        await counted_by(pair[1], lambda: pair[1].delete("/events/by-slug/last"))

    held_up(monkeypatch, pair[0], step, trashed)
    await pair[0].store.counts.catch_up()
    assert await differences(pair[0].store) == []


@pytest.mark.parametrize("step", STEPS)
async def test_an_event_that_is_written_again_while_it_is_counted_is_counted_with_both(
    pair: Pair, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = await pair[0].event(**LINKS)
    held_up(monkeypatch, pair[0], "_events", lambda: pair[1].patch(f"/events/{event['id']}", STEPS[step]))
    await pair[0].store.counts.catch_up()
    await pair[1].store.maintain()
    assert await differences(pair[0].store) == []


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.embedded_fields and kind.is_post], ids=named)
async def test_the_last_end_is_right_when_one_goes_and_another_comes(
    pair: Pair, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later event appears, and is counted, while the end of the others is looked for."""
    record = await pair[0].made(kind.plural, **{kind.name_field: "Name"})
    link = {FIELD[kind.name]: [record["id"]]}
    events = [await pair[0].event(f"Event {n}", **link) for n in range(2)]
    await pair[0].store.counts.catch_up()
    assert (await pair[0].delete(f"/events/{events[0]['id']}"))[0] == 200

    async def later() -> None:
        await counted_by(pair[1], lambda: pair[1].event("Last", **link, end_date="2029-01-01 00:00:00"))

    held_up(monkeypatch, pair[0], "begin", later)
    await pair[0].store.counts.catch_up()
    assert await differences(pair[0].store) == []
