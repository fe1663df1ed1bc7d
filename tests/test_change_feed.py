"""The change feed: its position changes with every acknowledged change to a record, and only then."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

import pytest
from bson import ObjectId, Timestamp
from bson.datetime_ms import DatetimeMS
from pymongo import ReadPreference
from pymongo.errors import AutoReconnect, ConfigurationError, OperationFailure

from schemas import TAG
from schemas.caller import EVERYBODY
from schemas.errors import NotFound, UnderRestore
from schemas.kind import load
from schemas.site import Site
from service.changes import feed
from service.changes.change import parse
from service.changes.feed import CHECKPOINT, ChangeFeed
from service.changes.restores import MARKER
from service.mongo import client, write_clock
from service.mongo.loaders import RecordLoader
from service.mongo.write_clock import Clock, WriteClock, read_clock
from service.store import Store
from service.store.links import resolving
from service.store.lists import page_finder
from tests.checker import agrees
from tests.conftest import Api
from tests.samples import TIMES

KINDS = ("events", "venues", "organizers", "categories", "tags")


async def test_a_write_by_another_client_is_seen_as_soon_as_it_is_acknowledged(store: Store) -> None:
    other = ChangeFeed(store.client[store.database.name])
    before = await other.catch_up()
    for number in range(50):
        plural = KINDS[number % len(KINDS)]
        await store.database[plural].update_one(
            {"_id": 1}, {"$set": {"version": number, "slug": plural}}, upsert=True
        )
        assert other.position == before
        assert before != (before := await other.catch_up())
        assert other.position == before
    await other.close()


async def test_other_writes_leave_the_position_as_it_is(store: Store) -> None:
    feed = store.feed
    position = await feed.catch_up()
    await store.database["counters"].update_one({"_id": "test"}, {"$inc": {"n": 1}}, upsert=True)
    await store.database["tokens"].delete_many({})
    other = store.client[f"{store.database.name}_other"]
    await other["events"].insert_one({"_id": 1})
    try:
        assert await feed.catch_up() == position
    finally:
        await store.client.drop_database(other.name)


async def test_a_cached_list_is_not_read_again_after_a_write_to_another_database(
    api: Api, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await api.event("Event")
    first = [(await api.get("/events"))[1] for _ in range(2)][-1]
    other = store.client[f"{store.database.name}_other"]
    await other["events"].insert_one({"_id": 1})

    async def refuse(*_: Any) -> None:
        raise AssertionError("read again")

    with monkeypatch.context() as patch:
        patch.setattr(api.store, "page", refuse)
        assert (await api.get("/events"))[1] == first
    await store.client.drop_database(other.name)
    await api.event("Another")
    assert (await api.get("/events"))[1]["total"] == 2


async def test_counters_alone_are_no_change_of_a_kind(store: Store) -> None:
    feed, venues = store.feed, store.database["venues"]
    await venues.insert_one({"_id": 1, "slug": "a", "events": {"publish": 0}})
    position = await feed.catch_up()
    await venues.update_one({"_id": 1}, {"$inc": {"events.publish": 1}})
    assert await feed.catch_up() != position
    assert not feed.has_changed("venues", position)
    await venues.update_one({"_id": 1}, {"$set": {"slug": "b"}, "$inc": {"events.publish": 1}})
    await feed.catch_up()
    assert feed.has_changed("venues", position)
    assert not feed.has_changed("organizers", position)


async def test_a_stream_that_breaks_is_opened_again_at_a_new_position(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed, tags = store.feed, store.database["tags"]
    await tags.insert_one({"_id": 1, "slug": "a"})
    position = await feed.catch_up()
    assert feed._stream
    with monkeypatch.context() as patch:
        patch.setattr(feed._stream, "try_next", failing(OperationFailure("history lost", 286)))
        await tags.update_one({"_id": 1}, {"$set": {"slug": "b"}})
        assert await feed.catch_up() != position
    assert feed.has_changed("events", position), "changes may have been missed"
    await feed.close()
    with monkeypatch.context() as patch:
        patch.setattr(feed, "_read", failing(AutoReconnect("no primary")))
        with pytest.raises(AutoReconnect):
            await feed.catch_up()
    assert await feed.catch_up() != position


async def test_a_stream_is_not_resumed_by_the_driver(store: Store) -> None:
    """It would do so at a primary that may not have committed yet what the clock stands for."""
    feed, database = store.feed, store.database
    position = await feed.catch_up()
    assert feed._stream
    opened = [feed._stream.cursor_id]
    await database.command({"killCursors": "$cmd.aggregate", "cursors": opened})
    await database["tags"].insert_one({"_id": 1, "slug": "a"})
    await feed.catch_up()
    assert feed.has_changed("events", position), "changes may have been missed"


async def test_a_stream_that_ended_with_its_database_is_opened_again(store: Store) -> None:
    mongo, name = store.client, f"{store.database.name}_dropped"
    dropped = ChangeFeed(mongo[name])
    await mongo[name]["tags"].insert_one({"_id": 1, "slug": "a"})
    await dropped.catch_up()
    await mongo.drop_database(name)
    await dropped.catch_up()
    position = await dropped.catch_up()
    await mongo[name]["tags"].insert_one({"_id": 2, "slug": "b"})
    await dropped.catch_up()
    assert dropped.has_changed("tags", position)
    await dropped.close()
    await mongo.drop_database(name)


async def test_after_an_election_nothing_that_was_read_before_is_current(store: Store) -> None:
    feed, tags = store.feed, store.database["tags"]
    position, stream = await feed.catch_up(), feed._stream
    pretend_election(feed)
    assert (after := await feed.catch_up()) > position
    assert feed._stream is not stream
    assert all(feed.has_changed(plural, position) for plural in KINDS)
    await tags.insert_one({"_id": 1, "slug": "a"})
    assert await feed.catch_up() == after + 1
    assert feed.has_changed("tags", after)
    assert not feed.has_changed("events", after)


async def test_what_a_new_primary_may_have_answered_is_read_again(store: Store) -> None:
    feed, answers = store.feed, iter(["too old", "current", NotFound(kind="event"), "there"])

    async def read() -> Any:
        answer = next(answers)
        if answer not in ("current", "there"):
            pretend_election(feed)
        if isinstance(answer, NotFound):
            raise answer
        return answer

    await feed.catch_up()
    assert await feed.confirm(read) == "current"
    assert await feed.confirm(read) == "there"


async def test_a_read_during_which_the_new_primary_becomes_known_is_done_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have begun before the new primary had committed a write, and have caught up with it after."""
    feed, answers = store.feed, iter(["too old", "current"])
    monkeypatch.setattr(WriteClock, "knows_primary", True)

    async def read() -> str:
        await feed.catch_up()
        return next(answers)

    await feed.catch_up()
    pretend_election(feed)
    assert await feed.confirm(read) == "current"


async def test_a_list_is_read_again_after_an_election(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where no handler asks for it."""
    await api.made("tags", name="Jazz")
    store, read, is_stale = api.store, page_finder.aggregate, [True]

    async def stale(*arguments: Any, **options: Any) -> Any:
        return [] if is_stale and is_stale.pop() else await read(*arguments, **options)

    await store.feed.catch_up()
    pretend_election(store.feed)
    monkeypatch.setattr(WriteClock, "knows_primary", True)
    monkeypatch.setattr(page_finder, "aggregate", stale)
    page = await store.page(TAG, load(TAG.query_schema, {"hide_empty": "false"}, Site()), EVERYBODY)
    assert (page.total, is_stale) == (1, [])


async def test_a_record_is_read_again_after_an_election(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    event, feed = await api.event("Event"), api.store.feed
    await feed.catch_up()
    answers: list[Any] = [None]
    load = RecordLoader.load_many

    async def stale(loader: RecordLoader, asked: Any) -> Any:
        if not answers:
            return await load(loader, asked)
        pretend_election(feed)
        return answers.pop() or {}

    monkeypatch.setattr(RecordLoader, "load_many", stale)
    for path in (f"/events/{event['id']}", f"/events/by-slug/{event['slug']}", "/events"):
        answers.append(None)
        status, shown = await api.get(path)
        assert status == 200
        assert shown.get("events", [shown])[0]["title"] == "Event"
        assert not answers
    for change in ({"title": "Changed"}, {"venue": 7}):
        answers.append(None)
        status, _ = await api.patch(f"/events/{event['id']}", change)
        assert status == (200 if "title" in change else 400)
        assert not answers


async def test_what_an_event_links_to_is_read_again_after_an_election(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    venue, feed = await api.made("venues", venue="Hall"), api.store.feed
    await feed.catch_up()
    is_stale, find = [True], resolving.find_in_many

    async def stale(collection: Any, parts: Any, shown: Any) -> Any:
        if not is_stale:
            return await find(collection, parts, shown)
        pretend_election(feed)
        is_stale.pop()
        return [[] for _ in parts]

    monkeypatch.setattr(resolving, "find_in_many", stale)
    event = await api.event("Event", venue=venue["id"])
    assert event["venue"]["venue"] == "Hall"
    assert not is_stale


def pretend_election(feed: ChangeFeed) -> None:
    """As if the driver had found another primary than the one whose clock was read."""
    assert feed.clock.last
    feed.clock.last = feed.clock.last._replace(election=election(0))


def failing(error: Exception) -> Any:
    def fail(*_: Any) -> None:
        raise error

    return fail


class Member:
    """Answers `hello` as it is told, one answer after the other."""

    def __init__(self, *said: dict[str, Any]) -> None:
        self.said = list(said)

    def command(self, _: str) -> dict[str, Any]:
        return self.said.pop(0) if len(self.said) > 1 else self.said[0]


def hello(committed: int, applied: int, *, is_primary: bool = True) -> dict[str, Any]:
    """What a member says whose last committed and applied writes are of these terms."""
    times = {
        "majorityOpTime": {"t": committed, "ts": Timestamp(100, committed)},
        "opTime": {"t": applied, "ts": Timestamp(200, applied)},
    }
    primary = {"electionId": election(applied)} if is_primary else {}
    said = {"setName": "rs", "isWritablePrimary": is_primary, "localTime": datetime(2027, 6, 1)}
    return {**said, "lastWrite": times, **primary}


def election(term: int) -> ObjectId:
    return ObjectId(f"7fffffff{term:016x}")


def test_a_new_primary_is_believed_once_it_has_committed_a_write_of_its_own_term(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(write_clock, "RETRY_SECONDS", 0.001)
    member = Member(hello(3, 3, is_primary=False), hello(3, 4), hello(3, 4), hello(4, 4))
    assert read_clock(member) == Clock(election(4), Timestamp(100, 4))  # type: ignore[arg-type]
    monkeypatch.setattr(write_clock, "MAX_WAIT_SECONDS", 0.01)
    with pytest.raises(AutoReconnect):
        read_clock(Member(hello(3, 4)))  # type: ignore[arg-type]


def at(committed: int, written: int, members: int = 3) -> dict[str, Any]:
    """What a primary says whose last committed and last written changes are of these times."""
    said = hello(1, 1) | {"hosts": ["localhost"] * members}
    said["lastWrite"]["majorityOpTime"]["ts"] = Timestamp(committed, 1)
    said["lastWrite"]["opTime"]["ts"] = Timestamp(written, 1)
    return said


@pytest.mark.parametrize(
    ("said", "is_lost"),
    [
        ([at(7, 7), at(7, 7)], False),  # there is nothing to commit
        ([at(7, 8), at(8, 9), at(9, 10)], False),  # it commits, later than it writes
        ([at(7, 8), at(7, 9)], True),
        ([at(7, 8), at(7, 9), at(9, 9)], False),  # the others are back
        ([at(7, 8, members=1), at(7, 9, members=1)], False),  # a slow disk
    ],
)
def test_a_primary_that_commits_nothing_has_lost_its_majority(
    said: list[dict[str, Any]], is_lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WriteClock, "knows_primary", True)
    clock = WriteClock(Member())  # type: ignore[arg-type]
    for number in range(len(said)):
        monkeypatch.setattr(write_clock, "monotonic", lambda seconds=float(number * 2): seconds)
        clock.last = clock.observe(said[number])
    assert clock.has_lost_primary is is_lost


def test_the_database_must_be_a_replica_set() -> None:
    with pytest.raises(ConfigurationError, match="must name a replica set"):
        read_clock(Member({"msg": "isdbgrid", "isWritablePrimary": True}))  # type: ignore[arg-type]


async def test_the_uri_cannot_choose_a_secondary() -> None:
    """One may lag behind what the clock of the primary has confirmed."""
    opened = client.connect("mongodb://127.0.0.1:1/?replicaSet=rs0&readPreference=secondaryPreferred")
    assert opened.read_preference == ReadPreference.PRIMARY
    opened.close()


async def test_a_stream_that_ends_before_the_oplog_goes_on_at_the_checkpoint(store: Store) -> None:
    """This process was suspended; others have kept the checkpoint current."""
    feed = store.feed
    await feed.catch_up()
    stream = feed._stream
    assert stream
    stream.try_next = failing(OperationFailure("too old", client.HISTORY_LOST))  # type: ignore[method-assign]
    await store.database["tags"].insert_one({"_id": 1, "slug": "a"})
    position = feed.position
    assert await feed.catch_up() > position
    assert not feed.has_lost_changes
    assert feed._stream is not stream


async def test_a_log_that_began_anew_may_be_lost_as_well(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The events were counted for longer than the oplog lasts."""
    feed, meta, aggregate = store.feed, store.database["meta"], store.feed._database.aggregate
    too_old = Timestamp(1, 1)

    def refuse(pipeline: list[dict[str, Any]], **options: Any) -> Any:
        if pipeline[0]["$changeStream"]["startAtOperationTime"] == too_old:
            raise OperationFailure("too old", client.HISTORY_LOST)
        return aggregate(pipeline, **options)

    await feed.catch_up()
    monkeypatch.setattr(feed._database, "aggregate", refuse)
    await meta.update_one({"_id": CHECKPOINT}, {"$set": {"at": too_old, "log": "beef"}})
    await feed.close()
    await feed.catch_up()
    assert feed.has_lost_changes
    await store.maintain()
    await feed.catch_up()
    assert not feed.has_lost_changes


async def test_a_restore_has_ended_only_when_caches_are_dropped(store: Store) -> None:
    """It is noticed in a thread, while requests are served."""
    feed, meta = store.feed, store.database["meta"]
    await meta.insert_one({"_id": MARKER})
    try:
        with pytest.raises(UnderRestore):
            await feed.catch_up()
    finally:
        await meta.delete_one({"_id": MARKER})
    learned = (store.database.delegate, CHECKPOINT, feed.time)
    await asyncio.to_thread(feed.restores.learn, *learned)
    assert not store.is_usable
    feed.restores.notice()
    assert store.is_usable


async def write_by_hand(api: Api, written: dict[str, Any]) -> None:
    """Another event like the one there is, as another program may write it."""
    events = api.store.database["events"]
    stored = await events.find_one({}) or {}
    await events.insert_one({**stored, "_id": 1000, "slug": "by-hand", **written})


@pytest.mark.parametrize("id", ["by hand", DatetimeMS(2**60)])
async def test_a_moved_category_with_an_event_that_another_program_has_written(api: Api, id: Any) -> None:
    event = await api.event("Concert", categories=["Jazz"])
    music = await api.made("categories", name="Music")
    await write_by_hand(api, {"_id": id})
    token = (await api.get("/changes"))[1]["next"]
    assert (await api.patch(f"/categories/{event['categories'][0]['id']}", {"parent": music["id"]}))[0] == 200
    status, page = await api.get(f"/changes?since={token}&kinds=events&categories={music['id']}")
    assert (status, {change["id"] for change in page["changes"]}) == (200, {event["id"]})


@pytest.mark.parametrize(
    "written",
    [
        {"categories": [{"_id": 1}]},
        {"categories": [{"name": "Music"}]},
        {"categories": 1},
        {"categories": [{"_id": "music", "version": 1}]},
        {"categories": [{"_id": 1.0, "version": 1}]},
        {"start_utc": None},
        {"end_utc": "2027-06-01"},
        {"end_utc": DatetimeMS(2**60)},
        {"date_utc": DatetimeMS(-(2**60))},
        {"_id": "by hand"},
        {"_id": DatetimeMS(2**60)},
    ],
    ids=str,
)
async def test_an_event_that_another_program_has_written_stops_nothing(
    api: Api, written: dict[str, Any]
) -> None:
    """Whatever is wrong with it: later changes are seen, counted and logged, and shown to all who do not ask
    for the event itself."""
    await api.event("Concert", categories=["Music"])
    category = (await api.get("/categories"))[1]["categories"][0]["id"]
    token = (await api.get("/changes"))[1]["next"]
    await write_by_hand(api, {"status": "draft", **written})
    gig = await api.event("Gig", categories=[category])
    status, page = await api.get("/categories")
    assert (status, [one["count"] for one in page["categories"]]) == (200, [2])
    status, page = await api.get(f"/changes?since={token}&kinds=events&status=publish")
    assert (status, [change["id"] for change in page["changes"]][-1:]) == (200, [gig["id"]])


@pytest.mark.parametrize("written", [{"start_utc": None}, {"end_utc": None}], ids=str)
async def test_an_event_that_another_program_has_written_is_counted(
    api: Api, written: dict[str, Any]
) -> None:
    """Also after it was repaired."""
    await api.event("Concert", categories=["Music"], venue={"venue": "Hall"})
    await write_by_hand(api, {"_id": 10, **written})
    assert (await api.get("/categories"))[1]["categories"][0]["count"] == 2
    token = (await api.get("/changes"))[1]["next"]
    assert (await api.patch("/events/10", {"title": "Repaired", **TIMES}))[0] == 200
    assert (await api.get("/categories"))[1]["categories"][0]["count"] == 2
    assert [one["id"] for one in (await api.get(f"/changes?since={token}"))[1]["changes"]] == [10]
    await agrees(api.store)


async def test_a_link_to_a_record_without_counters_stops_nothing(api: Api) -> None:
    """A tag that another program has written."""
    event = await api.event("Concert", tags=["Rock"])
    tags = api.store.database["tags"]
    stored = await tags.find_one({}) or {}
    other = {name: stored[name] for name in stored if name not in ("claim", "events")}
    await tags.insert_one({**other, "_id": 50, "name": "Jazz", "slug": "jazz", "key": "jazz"})
    await api.event("Gig", tags=[50, event["tags"][0]["id"]])
    assert (await api.get("/categories"))[0] == 200
    assert (await api.get(f"/tags/{event['tags'][0]['id']}"))[1]["count"] == 2


async def test_a_failure_while_changes_are_read_loses_none_of_them(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was taken from the stream is read again from another one."""
    await api.event("Concert")
    assert (await api.get("/events"))[1]["total"] == 1
    failures = iter([True, True])

    def parse_later(change_event: Any) -> Any:
        if next(failures, False):
            raise ValueError("cannot be parsed")
        return parse(change_event)

    monkeypatch.setattr(feed, "parse", parse_later)
    await write_by_hand(api, {})
    with pytest.raises(ValueError, match="cannot be parsed"):
        await api.store.feed.catch_up()
    assert (await api.get("/events"))[1]["total"] == 2
