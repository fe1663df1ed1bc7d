"""Usage counters and embedded copies are exact after every write, whoever writes at the same time."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from bson import DatetimeMS, Timestamp
from pymongo.errors import WriteError

from schemas.site import Site
from service.changes.feed import CHECKPOINT
from service.migrations import recount
from service.mongo.bulk_writes import insert_each
from service.store import open_store
from service.store.records.building import RecordBuilder
from service.store.records.updating import Updater
from tests.checker import agrees, differences, lose_changes
from tests.conftest import Api
from tests.samples import TIMES

Pair = tuple[Api, Api]
LINKS: dict[str, Any] = {
    "venue": {"venue": "Hall"},
    "organizer": {"organizer": "Club"},
    "tags": ["t"],
    "categories": ["c"],
}
CHANGES: dict[str, dict[str, Any]] = {
    "links": {"venue": {"venue": "Other"}, "organizer": [], "tags": ["new"], "categories": ["also new"]},
    "later": {"start_date": "2028-01-01 10:00:00", "end_date": "2028-01-01 12:00:00"},
    "earlier": {"start_date": "2026-01-01 10:00:00", "end_date": "2026-01-01 12:00:00"},
    "protected": {"new_password": "secret"},
    "drafted": {"status": "draft"},
    "trashed": {"status": "trash"},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("others", [0, 1])
async def test_every_change_is_counted(pair: Pair, change: dict[str, Any], others: int) -> None:
    """Also if other events have the same links, which then decide the latest end."""
    for number in range(others):
        await pair[1].event(f"Other {number}", **LINKS)
    event = await pair[0].event(**LINKS)
    assert await differences(pair[1].store) == []
    assert (await pair[0].patch(f"/events/{event['id']}", change))[0] == 200
    assert await differences(pair[1].store) == []


async def test_another_process_shows_the_count_at_once(pair: Pair) -> None:
    for number in range(1, 4):
        await pair[0].event(f"Event {number}", tags=["t"])
        assert [tag["count"] for tag in (await pair[1].get("/tags"))[1]["tags"]] == [number]


def renamed_after_the_look_up(pair: Pair, venue: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Another process renames a venue just after the first one has looked it up; returns what is left."""
    names, look_up = ["New"], RecordBuilder.look_up

    async def then_renamed(*arguments: Any) -> Any:
        found = await look_up(*arguments)
        if names:
            assert (await pair[1].patch(f"/venues/{venue}", {"venue": names.pop()}))[0] == 200
        return found

    monkeypatch.setattr(RecordBuilder, "look_up", then_renamed)
    return names


async def test_a_link_to_a_venue_that_changes_meanwhile_is_updated(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    venue, event = await pair[0].made("venues", venue="Old"), await pair[0].event()
    left = renamed_after_the_look_up(pair, venue["id"], monkeypatch)
    status, shown = await pair[0].patch(f"/events/{event['id']}", {"venue": [venue["id"]]})
    assert (status, shown["venue"]["venue"], left) == (200, "New", [])
    assert await differences(pair[0].store) == []


async def test_a_copy_whose_writer_has_died_is_updated(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was written after the venue had changed, and was not compared with it."""
    venue = await pair[0].made("venues", venue="Old")

    async def dies(events: Any) -> dict[int, Any]:
        return {}

    left = renamed_after_the_look_up(pair, venue["id"], monkeypatch)
    monkeypatch.setattr(pair[0].store.fanout, "update_outdated", dies)
    monkeypatch.setattr(pair[0].store.log, "update_soon", lambda: None)
    event = await pair[0].event(venue=[venue["id"]])
    assert (event["venue"]["venue"], left) == ("Old", [])
    assert await differences(pair[1].store) == []


async def test_a_record_that_the_database_refuses_does_not_fail_others_of_its_group(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuses(collection: Any, rows: Any, session: Any = None) -> dict[Any, Exception]:
        bad = [row for row in rows if row.get("title") == "Bad"]
        if bad and session:
            raise WriteError("refused")
        await insert_each(collection, [row for row in rows if row not in bad], session)
        return {row["_id"]: WriteError("refused") for row in bad}

    monkeypatch.setattr("service.store.records.building.insert_each", refuses)
    titles = ["Good 1", "Bad", "Good 2", "Good 3"]
    sent = [api.post("/events", {"title": title, "tags": ["t"], **TIMES}) for title in titles]
    assert [status for status, _ in await asyncio.gather(*sent)] == [201, 503, 201, 201]
    assert await differences(api.store) == []


async def test_processes_that_count_at_once_count_once(pair: Pair) -> None:
    for number in range(20):
        await pair[number % 2].event(f"Event {number}", **LINKS)
        await asyncio.gather(*(api.store.log.update() for api in pair for _ in range(2)))
    assert await differences(pair[0].store) == []


async def test_a_process_that_dies_while_counting_counts_nothing_twice(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, mongodb_uri: str
) -> None:
    """It has updated the counters, but not the checkpoint."""

    async def dies(*arguments: Any) -> bool:
        return False

    monkeypatch.setattr(pair[0].store.log, "update_soon", lambda: None)
    monkeypatch.setattr(pair[0].store.log._rows, "append_changes", dies)
    await pair[0].event(**LINKS)
    await pair[0].store.log.update()
    tag = await pair[0].store.database["tags"].find_one()
    assert tag is not None
    assert tag["events"]["publish"] == 1
    async with open_store(mongodb_uri, pair[0].store.database.name, Site()) as third:
        assert await differences(third) == []


async def test_a_database_without_a_checkpoint_is_counted_anew(pair: Pair) -> None:
    """For example a restored one: its events have another UUID."""
    await pair[0].event(**LINKS)
    store = pair[0].store
    await differences(store)
    other = {"$set": {"events_uuid": None}}
    await store.database["meta"].update_one({"_id": CHECKPOINT}, other)
    wrong = {"events.publish": 99, "events.as_of": Timestamp(2**31, 1)}
    await store.database["venues"].update_many({}, {"$set": wrong})
    await store.start()
    assert await differences(store) == []


async def test_lost_changes_are_counted_anew(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oplog does not reach back to the checkpoint: MongoDB refuses to open the stream."""
    await api.event(**LINKS)
    await differences(api.store)
    await api.store.database["tags"].update_many({}, {"$set": {"events.publish": 99}})

    await lose_changes(api.store, monkeypatch)
    checkpoint = await api.store.database["meta"].find_one({"_id": CHECKPOINT})
    await api.event(**LINKS)
    await api.store.log.update()
    assert await api.store.database["meta"].find_one({"_id": CHECKPOINT}) == checkpoint
    await api.store.maintain()
    assert await differences(api.store) == []


async def test_changes_while_lost_ones_are_counted_are_not_lost(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests read the change feed at every moment, also while it is closed to begin at the checkpoint."""
    await api.event(**LINKS)
    await differences(api.store)
    await lose_changes(api.store, monkeypatch)
    count, close = recount.count_events, api.store.feed.close

    async def count_and_go_on(*arguments: Any) -> None:
        await count(*arguments)
        await api.event(**LINKS)

    async def close_slowly() -> None:
        await close()
        reading.append(asyncio.create_task(api.store.feed.catch_up()))
        await asyncio.sleep(0.1)

    reading: list[Any] = []
    monkeypatch.setattr(recount, "count_events", count_and_go_on)
    monkeypatch.setattr(api.store.feed, "close", close_slowly)
    await api.store.maintain()
    monkeypatch.undo()
    await asyncio.gather(*reading)
    assert reading
    await api.event(**LINKS)
    assert await differences(api.store) == []


async def test_counting_takes_batches_of_ids_that_exist(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Imported ids may be far from all others; and events may have links to records that are gone."""
    monkeypatch.setattr(recount, "BATCH", 2)
    far, reported = 10**11, list[tuple[int, int]]()
    database = api.store.database
    events = [await api.event(venue={"venue": f"Hall {number}"}) for number in range(6)]
    await agrees(api.store)
    venue = await database["venues"].find_one({"_id": events[5]["venue"]["id"]})
    await database["venues"].insert_one({**venue, "_id": far, "slug": "far"})
    await database["events"].update_one({"_id": events[5]["id"]}, {"$set": {"venue.0._id": far}})
    await database["venues"].delete_many({"_id": {"$in": [events[n]["venue"]["id"] for n in (1, 2, 3)]}})
    counted = recount.Counted(database, await recount.snapshot_time(database))
    await recount.forget_times(counted)
    await database["venues"].update_many({}, {"$set": {"events.publish": 7}})
    async with asyncio.timeout(20):
        await recount.count_events(counted, lambda _, done, total: reported.append((done, total)))
    numbers = {row["_id"]: row["events"]["publish"] async for row in database["venues"].find()}
    ids = [event["venue"]["id"] for event in events]
    assert numbers == {ids[0]: 1, ids[4]: 1, ids[5]: 0, far: 1}
    assert reported == [(2, 4), (4, 4)]


async def test_a_crowd_in_two_processes_counts_right(pair: Pair) -> None:
    """All events share an organizer; venues come and go."""
    organizer = (await pair[0].made("organizers", organizer="Club"))["id"]
    venues = [(await pair[0].made("venues", venue=f"Hall {number}"))["id"] for number in range(3)]
    wrong: list[Any] = []

    async def client(number: int) -> None:
        chance, api = random.Random(number), pair[number % 2]
        for step in range(6):
            links = {"organizer": [organizer], "venue": [chance.choice(venues)], "tags": [f"t{step % 3}"]}
            status, event = await api.post("/events", {"title": "Event", **TIMES, **links})
            if status == 201 and chance.random() < 0.7:
                change = chance.choice([*CHANGES.values()])
                status, _ = await api.patch(f"/events/{event['id']}", change)
            if chance.random() < 0.2:
                await api.patch(f"/venues/{chance.choice(venues)}", {"venue": f"Hall {number}.{step}"})
            wrong.extend([status] if status not in (200, 201) else [])

    await asyncio.gather(*map(client, range(8)))
    assert wrong == []
    await agrees(pair[0].store)


async def test_a_venue_without_events_has_none(api: Api) -> None:
    venue = (await api.made("venues", venue="Hall"))["id"]
    event = await api.event(venue=[venue])
    assert await api.ids("venues", has_events="true") == [venue]
    await api.delete(f"/events/{event['id']}")
    assert await api.ids("venues", has_events="true") == []
    assert await api.ids("venues", has_events="false") == [venue]


async def test_an_event_at_the_size_limit_does_not_stop_the_change_log(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its copies cannot be updated; everything else is counted and logged."""
    venue = await pair[0].made("venues", venue="Old")

    async def skips(events: Any) -> dict[int, Any]:
        return {}

    async def is_too_large(*arguments: Any) -> None:
        raise WriteError("too large")

    renamed_after_the_look_up(pair, venue["id"], monkeypatch)
    monkeypatch.setattr(pair[0].store.fanout, "update_outdated", skips)
    for api in pair:
        monkeypatch.setattr(api.store.fanout, "update_copies", is_too_large)
    await pair[0].event(venue=[venue["id"]], tags=["t"])
    status, shown = await pair[1].get("/tags")
    assert (status, [tag["count"] for tag in shown["tags"]]) == (200, [1])
    assert "are outdated" in caplog.text


async def test_a_record_that_cannot_be_stored_does_not_stop_the_publication_of_others(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [
        (await api.event(f"Event {number}", status="future", date="2099-01-01"))["id"] for number in (1, 2)
    ]
    due = {"$set": {"date_utc": api.store.site.now()}}
    await api.store.database["events"].update_many({}, due)
    attempt = Updater._attempt

    async def refuses(updater: Updater, kind: Any, stored: Any, *rest: Any) -> Any:
        if stored["_id"] == ids[0]:
            raise WriteError("too large")
        return await attempt(updater, kind, stored, *rest)

    monkeypatch.setattr(Updater, "_attempt", refuses)
    await api.store.maintain()
    assert [(await api.get(f"/events/{id}"))[1]["status"] for id in ids] == ["future", "publish"]


@pytest.mark.parametrize(
    "written",
    [
        {"$unset": {"version": ""}},
        {"$unset": {"modified_utc": ""}},
        {"$set": {"modified_utc": DatetimeMS(2**60)}},
        {"$unset": {"slug": ""}},
    ],
    ids=str,
)
async def test_a_malformed_record_does_not_stop_the_publication_of_others(
    api: Api, written: dict[str, Any]
) -> None:
    ids = [
        (await api.event(f"Event {number}", status="future", date="2099-01-01"))["id"] for number in (1, 2)
    ]
    events = api.store.database["events"]
    await events.update_many({}, {"$set": {"date_utc": api.store.site.now()}})
    await events.update_one({"_id": ids[0]}, written)
    await events.insert_one(
        {"_id": "by hand", "slug": "by-hand", "status": "future", "date_utc": api.store.site.now()}
    )
    await api.store.maintain()
    assert (await api.get(f"/events/{ids[1]}"))[1]["status"] == "publish"
