"""What events show and count of other records stays in step with them, whoever changes or dies."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from bson.datetime_ms import DatetimeMS
from pymongo.errors import WriteError

from schemas import CATEGORY, EVENT, KINDS, VENUE, Kind
from schemas.caller import EVERYBODY
from schemas.kind import load
from schemas.kinds.event_representation import LINK_FIELD
from schemas.site import Site
from service.mongo import write_clock
from service.mongo.client import Session, in_transaction
from service.store.links import fanout
from service.store.links.fanout import record_of
from service.tokens import utc_now
from tests.checker import LONG_AGO, agrees, differences, maintain_later, until
from tests.conftest import Api
from tests.samples import named

LINKABLE = [kind for kind in KINDS if kind.name in LINK_FIELD]
POSTED = [kind for kind in LINKABLE if kind.is_post]
Pair = tuple[Api, Api]
every_linked = pytest.mark.parametrize("kind", LINKABLE, ids=named)
every_linked_post = pytest.mark.parametrize("kind", POSTED, ids=named)


async def enqueued(api: Api, kind: Kind, id: int) -> None:
    """Store a fan-out job without a change."""
    await in_transaction(api.store.database, partial(api.store.fanout.enqueue, kind, [id]))


class Died(Exception):
    """Stands for the end of a process: nothing after it is done."""


def to(kind: Kind, *ids: int) -> dict[str, Any]:
    """The body of an event that links to these records."""
    return {LINK_FIELD[kind.name]: list(ids)}


def shown(event: Any, kind: Kind) -> list[Any]:
    """The linked records of a kind in an event; one venue is shown without a list around it."""
    found = event[LINK_FIELD[kind.name]]
    return found if isinstance(found, list) else [found]


async def seen(api: Api, event: Any, kind: Kind) -> list[Any]:
    """The titles of the linked records, which every way to read the event must agree on."""
    ways = [
        (await api.get(f"/events/{event['id']}"))[1],
        (await api.get(f"/events/by-slug/{event['slug']}"))[1],
        *(await api.get("/events", include=str(event["id"])))[1]["events"],
    ]
    titles = [[one[kind.name_field] for one in shown(way, kind)] for way in ways]
    assert titles[0] == titles[1] == titles[2]
    return titles[0]


async def linked(api: Api, kind: Kind, title: str = "Old name", **more: Any) -> tuple[str, Any]:
    """The path of a new record, and an event that links to it."""
    record = await api.made(kind.plural, **{kind.name_field: title})
    return f"/{kind.plural}/{record['id']}", await api.event(**to(kind, record["id"]), **more)


# Following


@every_linked
async def test_a_new_name_shows_in_every_event(api: Api, kind: Kind) -> None:
    path, first = await linked(api, kind)
    id = int(path.rpartition("/")[2])
    events = [first, *[await api.event(f"Event {n}", **to(kind, id)) for n in range(3)]]
    tags = []
    for event in events:
        await api.get(f"/events/{event['id']}")
        tags.append(api.headers["ETag"])
    await api.store.database["events"].update_many({}, {"$set": {"modified_utc": LONG_AGO}})
    assert (await api.patch(path, {kind.name_field: "New name", "description": "Words"}))[0] == 200
    for event, tag in zip(events, tags, strict=True):
        assert await seen(api, event, kind) == ["New name"]
        _, now = await api.get(f"/events/{event['id']}")
        assert shown(now, kind)[0]["description"] == "Words"
        assert not now["modified"].startswith("2001")
        assert api.headers["ETag"] != tag
        status, _ = await api.patch(f"/events/{event['id']}", {"title": "Mine"}, headers={"If-Match": tag})
        assert status == 412
    await agrees(api.store)


@every_linked_post
async def test_a_new_slug_shows_in_events(api: Api, kind: Kind) -> None:
    path, event = await linked(api, kind)
    slug = (await api.get(path))[1]["slug"]
    assert (await api.patch(f"/{kind.plural}/by-slug/{slug}", {"slug": "another"}))[0] == 200
    _, now = await api.get(f"/events/{event['id']}")
    assert shown(now, kind)[0]["slug"] == "another"
    assert "/another/" in shown(now, kind)[0]["url"]


@pytest.mark.parametrize(
    "written", [{"_id": "by hand"}, {"_id": DatetimeMS(2**60)}, {"version": None}], ids=str
)
async def test_an_event_that_another_program_has_written_does_not_stop_the_others(
    api: Api, written: dict[str, Any]
) -> None:
    path, event = await linked(api, VENUE)
    events = api.store.database["events"]
    stored = await events.find_one({"_id": event["id"]}) or {}
    await events.insert_one(stored | {"_id": 1000, "slug": "by-hand"} | written)
    await events.insert_one(stored | {"_id": 2000, "slug": "later"})
    assert (await api.patch(path, {"venue": "New name"}))[0] == 200
    for one in (event, event | {"id": 2000}):
        assert await seen(api, one, VENUE) == ["New name"]


async def test_a_job_that_cannot_be_run_does_not_stop_the_others(api: Api) -> None:
    _, event = await linked(api, VENUE)
    database, id = api.store.database, event["venue"]["id"]
    await database["fanout_jobs"].insert_many(
        [{"_id": "venue:x:1", "at": LONG_AGO}, {"_id": f"venue:{id}:2", "at": LONG_AGO}]
    )
    await database["venues"].update_one({"_id": id}, {"$set": {"venue": "New name"}, "$inc": {"version": 1}})
    await api.store.fanout.resume_abandoned()
    assert await seen(api, event, VENUE) == ["New name"]
    assert [job["_id"] async for job in database["fanout_jobs"].find()] == ["venue:x:1"]


@every_linked_post
async def test_what_is_in_the_trash_is_not_shown_until_it_returns(api: Api, kind: Kind) -> None:
    path, event = await linked(api, kind)
    assert (await api.delete(path))[0] == 200
    assert await seen(api, event, kind) == []
    assert (await api.patch(path, {"status": "publish"}))[0] == 200
    assert await seen(api, event, kind) == ["Old name"]
    await agrees(api.store)


@every_linked_post
async def test_a_draft_is_hidden_from_the_public_and_not_from_an_editor(
    roles: dict[str, Api], kind: Kind
) -> None:
    editor, public = roles["editor"], roles["public"]
    path, event = await linked(editor, kind)
    id = path.rpartition("/")[2]
    assert await seen(public, event, kind) == ["Old name"]
    assert (await editor.patch(path, {"status": "draft"}))[0] == 200
    assert await seen(public, event, kind) == []
    assert await seen(roles["author"], event, kind) == []
    assert await seen(editor, event, kind) == ["Old name"]
    assert await seen(roles["viewer"], event, kind) == ["Old name"]
    assert "Old name" not in str((await public.get(f"/events/{event['id']}"))[1])
    assert await public.ids("events", **{LINK_FIELD[kind.name]: id}) == []
    assert await editor.ids("events", **{LINK_FIELD[kind.name]: id}) == [event["id"]]
    assert (await editor.patch(path, {"status": "publish"}))[0] == 200
    assert await seen(public, event, kind) == ["Old name"]


async def test_children_of_a_deleted_category_move_up_in_events_too(api: Api) -> None:
    top = (await api.made("categories", name="Top"))["id"]
    middle = (await api.made("categories", name="Middle", parent=top))["id"]
    child = (await api.made("categories", name="Child", parent=middle))["id"]
    await api.made("categories", name="Grandchild", parent=child)
    event = await api.event(categories=[middle, child])
    assert (await api.delete(f"/categories/{middle}"))[0] == 200
    _, now = await api.get(f"/events/{event['id']}")
    assert [(one["name"], one["parent"]) for one in now["categories"]] == [("Child", top)]
    assert await api.ids("events", categories=str(top)) == [event["id"]]
    await agrees(api.store)


@every_linked
async def test_an_event_made_while_its_link_is_renamed_shows_the_new_name(pair: Pair, kind: Kind) -> None:
    record = await pair[0].made(kind.plural, **{kind.name_field: "Name"})
    path = f"/{kind.plural}/{record['id']}"
    other = await pair[0].event()
    for number in range(20):
        title = f"Name {number}"
        body = to(kind, record["id"]) | {
            "title": "Event",
            "start_date": "2027-06-01",
            "end_date": "2027-06-02",
        }
        (created, event), (renamed, _), (changed, _) = await asyncio.gather(
            pair[0].post("/events", body),
            pair[1].patch(path, {kind.name_field: title}),
            pair[1].patch(f"/events/{other['id']}", to(kind, record["id"]) | {"title": title}),
        )
        assert (created, renamed, changed) == (201, 200, 200)
        for one in (event, other):
            _, now = await pair[0].get(f"/events/{one['id']}")
            assert [copy[kind.name_field] for copy in shown(now, kind)] == [title]
    await agrees(pair[0].store)


@every_linked_post
async def test_an_event_made_while_its_link_goes_to_the_trash_does_not_show_it(
    pair: Pair, kind: Kind
) -> None:
    record = await pair[0].made(kind.plural, **{kind.name_field: "Name"})
    path = f"/{kind.plural}/{record['id']}"
    for number in range(15):
        body = to(kind, record["id"]) | {
            "title": "Event",
            "start_date": "2027-06-01",
            "end_date": "2027-06-02",
        }
        (created, event), (changed, _) = await asyncio.gather(
            pair[0].post("/events", body),
            pair[1].delete(path) if number % 2 == 0 else pair[1].patch(path, {"status": "publish"}),
        )
        assert (created, changed) == (201, 200)
        _, now = await pair[0].get(f"/events/{event['id']}")
        assert [copy[kind.name_field] for copy in shown(now, kind)] == ([] if number % 2 == 0 else ["Name"])
    await agrees(pair[0].store)


@pytest.mark.parametrize("kind", [kind for kind in LINKABLE if not kind.is_post], ids=named)
async def test_an_event_made_while_its_term_is_deleted_does_not_keep_it(pair: Pair, kind: Kind) -> None:
    for number in range(15):
        term = await pair[0].made(kind.plural, name=f"Name {number}")
        body = {"title": "Event", "start_date": "2027-06-01", "end_date": "2027-06-02"}
        (created, event), (deleted, _) = await asyncio.gather(
            pair[0].post("/events", body | {kind.plural: [term["id"]]}),
            pair[1].delete(f"/{kind.plural}/{term['id']}"),
        )
        assert created in (201, 400)
        assert deleted == 200
        if created == 201:
            assert (await pair[0].get(f"/events/{event['id']}"))[1][kind.plural] == []
    await agrees(pair[0].store)


async def crowd(api: Api, event: Any, size: int) -> None:
    """Many more events like one that was created, written past the service."""
    events = api.store.database["events"]
    model = await events.find_one({"_id": event["id"]})
    assert model is not None
    await events.insert_many(
        [model | {"_id": 100_000 + n, "slug": f"crowd-{n}"} for n in range(size)], ordered=False
    )
    await api.store.ids.reserve_for_import("post", 100_000 + size)


@pytest.mark.slow
async def test_thousands_of_events_follow_their_venue(api: Api) -> None:
    path, event = await linked(api, VENUE)
    await crowd(api, event, 3000)
    events = api.store.database["events"]
    for status, name in (("publish", "New name"), ("draft", "Newer name")):
        assert (await api.patch(path, {"venue": name, "status": status}))[0] == 200

        async def all_follow(name: str = name, status: str = status) -> bool:
            wanted = {"venue.venue": name, "venue.status": status}
            return await events.count_documents(wanted) == 3001

        await until(all_follow)
    await agrees(api.store)


# Processes that die


class DyingCollection:
    """A collection whose process dies at a certain change of many documents."""

    def __init__(self, collection: Any, after: int) -> None:
        self._collection = collection
        self._left = after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._collection, name)

    async def update_many(self, *arguments: Any, **options: Any) -> Any:
        if not self._left:
            raise Died
        self._left -= 1
        return await self._collection.update_many(*arguments, **options)


@every_linked
async def test_another_process_finishes_what_one_left_half_done(
    pair: Pair, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = await pair[0].made(kind.plural, **{kind.name_field: "Old name"})
    for n in range(12):
        await pair[0].event(f"Event {n}", **to(kind, record["id"]))
    monkeypatch.setattr(fanout, "EVENTS_PER_COMMAND", 5)
    dying = pair[0].store.fanout
    monkeypatch.setattr(dying, "_events", DyingCollection(pair[0].store.database["events"], 1))
    status, _ = await pair[0].patch(f"/{kind.plural}/{record['id']}", {kind.name_field: "New name"})
    assert status == 200
    events = pair[1].store.database["events"]
    assert await events.count_documents({f"{LINK_FIELD[kind.name]}.{kind.name_field}": "New name"}) == 5
    await maintain_later(pair[1].store)
    assert await differences(pair[1].store) == []


@pytest.mark.parametrize("kind", [kind for kind in LINKABLE if not kind.is_post], ids=named)
async def test_another_process_finishes_a_deletion(
    pair: Pair, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = await pair[0].made(kind.plural, name="Name")
    for n in range(12):
        await pair[0].event(f"Event {n}", **{kind.plural: [record["id"]]})
    monkeypatch.setattr(fanout, "EVENTS_PER_COMMAND", 5)
    dying = pair[0].store.fanout
    monkeypatch.setattr(dying, "_events", DyingCollection(pair[0].store.database["events"], 1))
    assert (await pair[0].delete(f"/{kind.plural}/{record['id']}"))[0] == 200
    await maintain_later(pair[1].store)
    assert await differences(pair[1].store) == []


async def test_children_that_moved_up_are_followed_after_a_death(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies when it has begun to update the copies."""
    top = (await pair[0].made("categories", name="Top"))["id"]
    middle = (await pair[0].made("categories", name="Middle", parent=top))["id"]
    children = [(await pair[0].made("categories", name=f"C{n}", parent=middle))["id"] for n in range(2)]
    await pair[0].event(categories=children)
    run, calls = pair[0].store.fanout.run, iter(range(100))

    async def dies(job: Any) -> None:
        if next(calls) == 1:
            raise Died
        await run(job)

    monkeypatch.setattr(pair[0].store.fanout, "run", dies)
    await pair[0].store.delete(CATEGORY, middle, EVERYBODY)
    assert await differences(pair[1].store) != []
    await maintain_later(pair[1].store)
    assert await differences(pair[1].store) == []


async def test_a_job_that_fails_does_not_stop_the_others_of_its_change(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = (await api.made("categories", name="Top"))["id"]
    child = (await api.made("categories", name="Child", parent=top))["id"]
    event = await api.event(categories=[top, child])
    update = api.store.fanout.update_copies

    async def refused(kind: Kind, id: int) -> None:
        if id == child:
            raise WriteError("refused")
        await update(kind, id)

    monkeypatch.setattr(api.store.fanout, "update_copies", refused)
    await api.delete(f"/categories/{top}")
    _, shown = await api.get(f"/events/{event['id']}")
    assert [category["id"] for category in shown["categories"]] == [child]
    monkeypatch.undo()
    await maintain_later(api.store)
    assert await differences(api.store) == []


async def test_a_job_is_only_there_when_its_change_is_made(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process waits for long, while another one runs all jobs, writes at last, and dies before it updates
    the copies."""
    path, _ = await linked(pair[0], VENUE)
    enqueue = pair[0].store.fanout.enqueue

    async def maintained(kind: Kind, ids: list[int], session: Session) -> Any:
        jobs = await enqueue(kind, ids, session)
        await maintain_later(pair[1].store)
        return jobs

    async def dies(job: Any) -> None:
        raise Died

    monkeypatch.setattr(pair[0].store.fanout, "enqueue", maintained)
    monkeypatch.setattr(pair[0].store.fanout, "run", dies)
    assert (await pair[0].patch(path, {"venue": "New name"}))[0] == 200
    await maintain_later(pair[1].store)
    assert await differences(pair[1].store) == []


async def test_an_event_that_is_linked_while_its_venue_is_renamed_shows_the_new_name(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The venue is renamed after the event's writer has read it: its version no longer matches."""
    venue = await pair[0].made("venues", venue="Old name")
    event = await pair[0].event()
    searchable = pair[0].store.vocabulary.searchable

    async def renamed_meanwhile(kind: Kind, record: Any) -> Any:
        monkeypatch.setattr(pair[0].store.vocabulary, "searchable", searchable)
        assert (await pair[1].patch(f"/venues/{venue['id']}", {"venue": "New name"}))[0] == 200
        return await searchable(kind, record)

    monkeypatch.setattr(pair[0].store.vocabulary, "searchable", renamed_meanwhile)
    wanted = load(EVENT.body_schema, {"title": "Linked", "venue": [venue["id"]]}, Site(), partial=True)
    updated = await pair[0].store.update(EVENT, event["id"], wanted, EVERYBODY)
    assert [copy["venue"] for copy in updated["venue"]] == ["New name"]
    assert await differences(pair[1].store) == []


async def test_a_job_that_fails_does_not_stop_the_others(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    venues = [await api.made("venues", venue=f"Hall {number}") for number in range(2)]
    for venue in venues:
        await api.event(venue=[venue["id"]])
        await api.store.database["venues"].update_one(
            {"_id": venue["id"]}, {"$set": {"venue": "New"}, "$inc": {"version": 1}}
        )
        await enqueued(api, VENUE, venue["id"])
    run, ran = api.store.fanout.run, []

    async def fails_once(job: Any) -> None:
        ran.append(record_of(job))
        if len(ran) == 1:
            raise WriteError("refused")
        await run(job)

    monkeypatch.setattr(api.store.fanout, "run", fails_once)
    await maintain_later(api.store)
    assert sorted(ran) == sorted(f"venue:{venue['id']}" for venue in venues)
    monkeypatch.undo()
    await maintain_later(api.store)
    copied = await api.store.database["events"].distinct("venue.venue")
    assert copied == ["New"]


async def test_a_job_that_takes_long_is_left_to_the_process_that_runs_it(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does the maintenance of its own process wait for it."""
    path, event = await linked(pair[0], VENUE)
    for name in ("RENEWAL_SECONDS", "INLINE_FANOUT_SECONDS"):
        monkeypatch.setattr(fanout, name, 0.02)
    monkeypatch.setattr(fanout, "ABANDONED_AFTER", timedelta(seconds=2))
    may_end, running = asyncio.Event(), list[int]()
    for number, api in enumerate(pair):
        linked_to = api.store.fanout._linked_to

        async def waits(kind: Kind, id: int, linked_to: Any = linked_to, number: int = number) -> Any:
            running.append(number)
            await may_end.wait()
            return await linked_to(kind, id)

        monkeypatch.setattr(api.store.fanout, "_linked_to", waits)
    assert (await pair[0].patch(path, {"venue": "New name"}))[0] == 200
    await asyncio.sleep(2.5)
    for api in pair:
        await asyncio.wait_for(api.store.maintain(), 5)
    assert running == [0]
    may_end.set()
    await until(lambda: agree(pair[1], event))


async def agree(api: Api, event: Any) -> bool:
    return await seen(api, event, VENUE) == ["New name"]


async def test_maintenance_goes_on_while_an_abandoned_job_takes_long(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is taken over by one process, once."""
    path, event = await linked(pair[0], VENUE)

    async def dies(job: Any) -> None:
        raise Died

    monkeypatch.setattr(pair[0].store.fanout, "run", dies)
    assert (await pair[0].patch(path, {"venue": "New name"}))[0] == 200
    monkeypatch.undo()
    monkeypatch.setattr(fanout, "INLINE_FANOUT_SECONDS", 0.02)
    may_end, running = asyncio.Event(), list[int]()
    for number, api in enumerate(pair):
        run = api.store.fanout.run

        async def runs(job: Any, run: Any = run, number: int = number) -> None:
            running.append(number)
            await may_end.wait()
            await run(job)

        monkeypatch.setattr(api.store.fanout, "run", runs)
    await maintain_later(pair[1].store)
    for api in pair:
        await asyncio.wait_for(api.store.maintain(), 5)
    assert running == [1]
    may_end.set()
    await until(lambda: agree(pair[0], event))


@pytest.mark.parametrize("hours", [-1, 1])
async def test_ages_of_jobs_do_not_depend_on_the_clock_of_a_service(
    api: Api, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    ahead = utc_now() + timedelta(hours=hours)
    monkeypatch.setattr(write_clock, "_now", lambda: ahead)
    await api.made("tags", name="one that moves the clock of writes")
    await api.store.feed.catch_up()
    jobs, old = api.store.database["fanout_jobs"], datetime.now(UTC) - timedelta(minutes=2)
    await jobs.insert_one({"_id": "venue:1:x", "at": old})
    await enqueued(api, VENUE, 2)
    await api.store.fanout.resume_abandoned()
    assert [record_of(job) async for job in jobs.find()] == ["venue:2"]


# All together


@pytest.mark.slow
async def test_everything_agrees_after_a_storm(pair: Pair) -> None:
    venues = [(await pair[0].made("venues", venue=f"Venue {n}"))["id"] for n in range(3)]
    organizers = [(await pair[0].made("organizers", organizer=f"Organizer {n}"))["id"] for n in range(2)]
    categories = [(await pair[0].made("categories", name=f"Category {n}"))["id"] for n in range(4)]
    events = [(await pair[0].event(f"Event {n}", venue=[venues[0]]))["id"] for n in range(4)]
    bad: list[Any] = []

    async def client(number: int) -> None:
        chance, api = random.Random(number), pair[number % 2]

        def links() -> dict[str, Any]:
            every = {
                "venue": chance.sample(venues, chance.randint(0, 2)),
                "organizer": chance.sample(organizers, chance.randint(0, 2)),
                "categories": chance.sample(categories, chance.randint(0, 2)),
                "tags": chance.sample(["red", "green", "blue", "Black & White"], chance.randint(0, 3)),
            }
            return dict(chance.sample(sorted(every.items()), chance.randint(1, 4)))

        def times() -> dict[str, Any]:
            year = chance.randint(2025, 2030)
            return {"start_date": f"{year}-01-01", "end_date": f"{year}-{chance.randint(1, 12):02}-02"}

        async def step() -> tuple[int, Any]:
            event = f"/events/{chance.choice(events)}"
            which = chance.randrange(14)
            if which < 3:
                status = chance.choice(["publish", "draft"])
                sent = {"title": chance.choice(["A", "B", "C"]), "status": status, **times(), **links()}
                answer = await api.post("/events", sent)
                if answer[0] != 201:
                    bad.append((sent, answer))
                events.append(answer[1].get("id", 1))
                return answer
            if which < 9:
                return await api.patch(event, chance.choice([links, times])())
            if which == 9:
                return await api.delete(event)
            if which == 10:
                return await api.patch(event, {"status": chance.choice(["publish", "draft", "trash"])})
            if which == 11:
                status = chance.choice(["publish", "draft", "trash"])
                name = f"Venue {chance.random()}"
                return await api.patch(f"/venues/{chance.choice(venues)}", {"venue": name, "status": status})
            if which == 12:
                parent = chance.choice([0, *categories])
                return await api.patch(f"/categories/{chance.choice(categories)}", {"parent": parent})
            _, page = await api.get("/tags", hide_empty="0")
            if not page["tags"]:
                return await api.post("/tags", {"name": "red"})
            tag = chance.choice(page["tags"])
            if chance.random() < 0.3:
                return await api.delete(f"/tags/{tag['id']}")
            return await api.patch(f"/tags/{tag['id']}", {"description": f"{chance.random()}"})

        for _ in range(30):
            status, answer = await step()
            if status not in (200, 201, 400, 404, 410) or answer.get("code") == "rest_missing_callback_param":
                bad.append((status, answer))

    await asyncio.gather(*(client(number) for number in range(8)))
    assert bad == []
    await agrees(pair[0].store)


async def test_a_category_that_gets_a_child_while_it_is_deleted_by_a_process_that_dies(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    dying, other = pair
    top = (await dying.made("categories", name="Top"))["id"]
    gone = (await dying.made("categories", name="Gone", parent=top))["id"]
    child = (await dying.made("categories", name="Child"))["id"]
    await dying.event("Concert", categories=[child])
    tree = dying.store.updater._tree
    remove, moved = tree.remove, list[int]()

    async def remove_later(*asked: Any) -> Any:
        if not moved:
            moved.append(child)
            assert (await other.patch(f"/categories/{child}", {"parent": gone}))[0] == 200
            await other.store.log.update()
        await remove(*asked)
        raise Died

    monkeypatch.setattr(tree, "remove", remove_later)
    with pytest.raises(Died):
        await dying.store.delete(CATEGORY, gone, EVERYBODY)
    await maintain_later(other.store)
    assert await differences(other.store) == []
