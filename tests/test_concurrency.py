"""Many at once, also from two processes: nothing is lost, doubled or torn."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable
from datetime import datetime
from itertools import count
from typing import Any

import pytest

from schemas import CATEGORY, TAG, Kind
from schemas.caller import EVERYBODY
from schemas.kind import load
from schemas.site import Site
from schemas.values.zones import parse_zone
from service.migrations.id_counters import raise_id_counters
from service.store import open_store
from tests.checker import agrees, differences
from tests.conftest import Api
from tests.samples import POSTS, TERMS, TIMES, named

Answer = tuple[int, Any]
every_post = pytest.mark.parametrize("kind", POSTS, ids=named)
every_term = pytest.mark.parametrize("kind", TERMS, ids=named)


def body_of(kind: Kind, title: str) -> dict[str, Any]:
    return {kind.name_field: title, **(TIMES if kind.name == "event" else {})}


async def together(*requests: Awaitable[Answer]) -> list[Answer]:
    return list(await asyncio.gather(*requests))


def statuses(answers: list[Answer]) -> Counter[int]:
    return Counter(status for status, _ in answers)


# Slugs and names


@every_post
@pytest.mark.parametrize("processes", [1, 2])
async def test_the_same_title_at_once_gets_slugs_in_a_row(
    pair: tuple[Api, Api], kind: Kind, processes: int
) -> None:
    posts = (pair[n % processes].post(f"/{kind.plural}", body_of(kind, "Same Title")) for n in range(50))
    answers = await together(*posts)
    assert statuses(answers) == {201: 50}, answers
    slugs = {record["slug"]: record["id"] for _, record in answers}
    assert set(slugs) == {"same-title", *(f"same-title-{n}" for n in range(2, 51))}
    assert len(set(slugs.values())) == 50
    for slug, id in slugs.items():
        assert (await pair[1].get(f"/{kind.plural}/by-slug/{slug}"))[1]["id"] == id
    await agrees(pair[0].store)


@every_term
async def test_the_same_name_at_once_makes_one_term(pair: tuple[Api, Api], kind: Kind) -> None:
    answers = await together(*(pair[n % 2].post(f"/{kind.plural}", {"name": "Jazz"}) for n in range(30)))
    assert statuses(answers) == {201: 1, 400: 29}
    (made,) = (record for status, record in answers if status == 201)
    for status, problem in answers:
        assert status == 201 or (problem["code"], problem["data"]["term_id"]) == ("term_exists", made["id"])


async def test_a_new_name_in_many_events_at_once_makes_one_term(pair: tuple[Api, Api]) -> None:
    body = body_of_event("Many", tags=["Fresh"], categories=["New"])
    answers = await together(*(pair[n % 2].post("/events", body) for n in range(30)))
    assert statuses(answers) == {201: 30}, answers
    for plural in ("tags", "categories"):
        _, page = await pair[0].get(f"/{plural}")
        assert [term["count"] for term in page[plural]] == [30]
        assert {term["id"] for _, event in answers for term in event[plural]} == {page[plural][0]["id"]}
    await agrees(pair[0].store)


@every_term
async def test_a_name_that_somebody_else_makes_meanwhile_is_linked(
    pair: tuple[Api, Api], kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The term appears between looking for it and making it."""
    builder = pair[0].store.creator._builder
    insert_linked = builder.insert_linked

    async def made_meanwhile(*arguments: Any) -> None:
        await pair[1].post(f"/{kind.plural}", {"name": "Jazz"})
        await insert_linked(*arguments)

    monkeypatch.setattr(builder, "insert_linked", made_meanwhile)
    body: dict[str, Any] = {kind.plural: ["Jazz"]}
    event = await pair[0].event(**body)
    assert (await pair[0].patch(f"/events/{event['id']}", {kind.plural: ["Jazz", "Blues"]}))[0] == 200
    await agrees(pair[0].store)


def body_of_event(title: str, **more: Any) -> dict[str, Any]:
    return {"title": title, **TIMES, **more}


async def test_new_venue_data_in_many_events_at_once(pair: tuple[Api, Api]) -> None:
    """Venues may share names, so two that are made in the same moment may both stay; none is left unused."""
    body = body_of_event("Many", venue={"venue": "Hall", "city": "Oslo"})
    answers = await together(*(pair[n % 2].post("/events", body) for n in range(30)))
    assert statuses(answers) == {201: 30}, answers
    assert {(event["venue"]["venue"], event["venue"]["city"]) for _, event in answers} == {("Hall", "Oslo")}
    linked = {event["venue"]["id"] for _, event in answers}
    assert set(await pair[0].ids("venues", per_page="100")) == linked
    await agrees(pair[0].store)


@pytest.mark.parametrize(
    ("field", "sent", "names"),
    [
        ("tags", ["Rock", "rock"], ["Rock"]),
        ("categories", ["Rock", "ROCK"], ["Rock"]),
        ("tags", ["Rock!", "Rock?"], ["Rock!", "Rock?"]),
        ("venue", [{"venue": "Hall", "city": "Oslo"}, {"venue": "Hall", "city": "Rome"}], ["Hall", "Hall"]),
        ("organizer", [{"organizer": "Club"}, {"organizer": "Club", "phone": "1"}], ["Club", "Club"]),
    ],
)
async def test_new_links_that_are_alike_are_made_in_one_event(
    api: Api, field: str, sent: list[Any], names: list[str]
) -> None:
    wanted: dict[str, Any] = {field: sent}
    linked = (await api.event(**wanted))[field]
    assert [one.get("name") or one.get(field) for one in linked] == names
    await agrees(api.store)


@every_term
async def test_a_name_is_free_again_after_a_rename(api: Api, kind: Kind) -> None:
    first = await api.made(kind.plural, name="Old")
    assert (await api.patch(f"/{kind.plural}/{first['id']}", {"name": "New"}))[0] == 200
    second = await api.made(kind.plural, name="Old")
    assert second["id"] != first["id"]
    status, problem = await api.post(f"/{kind.plural}", {"name": "new"})
    assert (status, problem["code"]) == (400, "term_exists")
    await agrees(api.store)


async def test_a_name_is_free_again_under_a_parent_that_a_child_left(api: Api) -> None:
    parent = await api.made("categories", name="Parent")
    child = await api.made("categories", name="Child", parent=parent["id"])
    assert (await api.patch(f"/categories/{child['id']}", {"parent": 0}))[0] == 200
    await api.made("categories", name="Child", parent=parent["id"])
    await agrees(api.store)


@every_post
async def test_a_rename_to_a_slug_that_is_just_created(pair: tuple[Api, Api], kind: Kind) -> None:
    for number in range(15):
        old = (await pair[0].made(kind.plural, **body_of(kind, f"A {number}")))["slug"]
        answers = await together(
            pair[0].patch(f"/{kind.plural}/by-slug/{old}", {"slug": f"b-{number}"}),
            pair[1].post(f"/{kind.plural}", body_of(kind, f"B {number}")),
        )
        assert statuses(answers) == {200: 1, 201: 1}, answers
        assert {record["slug"] for _, record in answers} == {f"b-{number}", f"b-{number}-2"}
        assert (await pair[1].get(f"/{kind.plural}/by-slug/{old}"))[0] == 404
    await agrees(pair[0].store)


@every_post
async def test_the_second_of_a_title_comes_back_from_the_trash_under_its_slug(api: Api, kind: Kind) -> None:
    ids = []
    for _ in range(2):
        ids.append((await api.made(kind.plural, **body_of(kind, "Twice")))["id"])
        assert (await api.delete(f"/{kind.plural}/{ids[-1]}"))[0] == 200
    _, back = await api.patch(f"/{kind.plural}/{ids[1]}", {"status": "publish"})
    assert back["slug"] == "twice"


# Ids


async def test_ids_are_never_given_again(pair: tuple[Api, Api], mongodb_uri: str) -> None:
    name = pair[0].store.database.name
    used: list[int] = []
    for _ in range(3):
        async with open_store(mongodb_uri, name, Site()) as again:
            stores = [again, pair[0].store, pair[1].store]
            wanted = load(TAG.body_schema, {"name": "Tag", "slug": "tag"}, Site())
            made = await asyncio.gather(*(stores[n % 3].create(TAG, wanted, EVERYBODY) for n in range(20)))
            used += [tag["_id"] for tag in made]
            await asyncio.gather(*(stores[n % 3].delete(TAG, made[n]["_id"], EVERYBODY) for n in range(20)))
        await raise_id_counters(pair[0].store.database)
    assert len(set(used)) == len(used) == 60


async def test_a_counter_that_was_put_back_catches_up_at_the_start(api: Api, mongodb_uri: str) -> None:
    ids = {(await api.made(kind.plural, **body_of(kind, "Kept")))["id"] for kind in POSTS}
    await api.store.database["counters"].update_one({"_id": "post"}, {"$set": {"n": 0}})
    async with open_store(mongodb_uri, api.store.database.name, Site()) as again:
        for kind in POSTS:
            made = await again.create(kind, load(kind.body_schema, body_of(kind, "New"), Site()), EVERYBODY)
            assert made["_id"] > max(ids)


async def test_several_processes_start_at_once_on_an_empty_database(mongodb_uri: str, worker_id: str) -> None:
    name = f"empty_{worker_id}"
    stores = [open_store(mongodb_uri, name, Site()) for _ in range(4)]
    opened = await asyncio.gather(*(store.__aenter__() for store in stores))
    made = await asyncio.gather(
        *(store.create(TAG, {"name": f"Tag {n}"}, EVERYBODY) for n, store in enumerate(opened))
    )
    assert len({tag["_id"] for tag in made}) == 4
    assert await differences(opened[0]) == []
    await opened[0].client.drop_database(name)
    for store in stores:
        await store.__aexit__(None, None, None)


# Updates of one record


async def test_updates_of_different_fields_all_survive(pair: tuple[Api, Api]) -> None:
    event = await pair[0].event(venue={"venue": "Hall"})
    for number in range(15):
        fields: dict[str, Any] = {
            "title": f"Title {number}",
            "description": f"Words {number}",
            "excerpt": f"Few words {number}",
            "website": f"https://example.org/{number}",
            "featured": number % 2 == 0,
            "start_date": f"2027-05-01 10:{number:02}:00",
            "end_date": f"2027-07-01 10:{number:02}:00",
        }
        patches = (
            pair[at % 2].patch(f"/events/{event['id']}", {name: value})
            for at, (name, value) in enumerate(fields.items())
        )
        answers = await together(*patches)
        assert statuses(answers) == {200: len(fields)}, answers
        _, now = await pair[0].get(f"/events/{event['id']}")
        assert {name: now[name] for name in fields} == fields
    await agrees(pair[0].store)


async def etag(api: Api, path: str) -> str:
    assert (await api.get(path))[0] == 200
    tag: str = api.headers["ETag"]
    return tag


@pytest.mark.parametrize("kind", [*POSTS, *TERMS], ids=named)
async def test_of_updates_to_the_same_state_exactly_one_wins(pair: tuple[Api, Api], kind: Kind) -> None:
    path = f"/{kind.plural}/{(await pair[0].made(kind.plural, **body_of(kind, 'Name')))['id']}"
    for number in range(8):
        match = {"If-Match": await etag(pair[0], path)}
        answers = await together(
            *(pair[n % 2].patch(path, {"description": f"{number}-{n}"}, headers=match) for n in range(8))
        )
        assert statuses(answers) == {200: 1, 412: 7}, answers
        (won,) = (record["description"] for status, record in answers if status == 200)
        assert (await pair[0].get(path))[1]["description"] == won


async def test_a_refused_update_creates_nothing(pair: tuple[Api, Api]) -> None:
    path = f"/events/{(await pair[0].event())['id']}"
    for number in range(10):
        match = {"If-Match": await etag(pair[0], path)}
        patches = (
            pair[n % 2].patch(path, {"venue": {"venue": f"Hall {number}-{n}"}}, headers=match)
            for n in range(6)
        )
        assert statuses(await together(*patches)) == {200: 1, 412: 5}
    _, page = await pair[0].get("/venues", per_page="100")
    assert sorted(venue["venue"].split("-")[0] for venue in page["venues"]) == sorted(
        f"Hall {number}" for number in range(10)
    )


@every_term
async def test_of_a_deletion_and_an_update_of_the_same_state_one_wins(
    pair: tuple[Api, Api], kind: Kind
) -> None:
    for number in range(20):
        path = f"/{kind.plural}/{(await pair[0].made(kind.plural, name=f'Name {number}'))['id']}"
        match = {"If-Match": await etag(pair[0], path)}
        answers = await together(
            pair[1].delete(path, headers=match),
            pair[0].patch(path, {"slug": f"x-{number}"}, headers=match),
        )
        assert statuses(answers)[200] == 1, answers


async def test_zone_and_start_changed_at_once_agree_in_the_end(pair: tuple[Api, Api]) -> None:
    event = await pair[0].event(end_date="2027-08-01 10:00:00")
    path = f"/events/{event['id']}"
    for number in range(25):
        zone = ("Asia/Tokyo", "America/New_York", "Europe/Paris", "UTC+5:30")[number % 4]
        start = f"2027-06-{number + 1:02} 0{number % 10}:30:00"
        answers = await together(
            pair[0].patch(path, {"timezone": zone}),
            pair[1].patch(path, {"start_date": start}),
            pair[number % 2].patch(path, {"all_day": False}),
        )
        assert statuses(answers) == {200: 3}, answers
        _, now = await pair[0].get(path)
        assert (now["timezone"], now["start_date"]) == (zone, start)
        stored = await pair[0].store.database["events"].find_one({"_id": event["id"]})
        assert stored is not None
        assert stored["start_utc"] == parse_zone(zone).to_utc(stored["start"])
        assert stored["end_utc"] == parse_zone(zone).to_utc(stored["end"])


# Deletion


@every_post
async def test_a_deleted_post_stays_deleted_whatever_else_is_changed(
    pair: tuple[Api, Api], kind: Kind
) -> None:
    for number in range(15):
        path = f"/{kind.plural}/{(await pair[0].made(kind.plural, **body_of(kind, f'Name {number}')))['id']}"
        answers = await together(
            pair[0].delete(path), *(pair[n % 2].patch(path, {"description": str(n)}) for n in range(4))
        )
        assert statuses(answers) == {200: 5}, answers
        assert (await pair[1].get(path))[0] == 410
    await agrees(pair[0].store)


@every_term
async def test_a_deleted_term_does_not_come_back(pair: tuple[Api, Api], kind: Kind) -> None:
    for number in range(15):
        term = await pair[0].made(kind.plural, name=f"Name {number}")
        links: dict[str, Any] = {kind.plural: [term["id"]]}
        event = await pair[0].event(**links)
        path = f"/{kind.plural}/{term['id']}"
        answers = await together(
            pair[0].delete(path),
            *(pair[n % 2].patch(path, {"description": str(n)}) for n in range(3)),
            pair[1].patch(f"/events/{event['id']}", links),
        )
        assert answers[0][0] == 200
        assert statuses(answers[1:4]).keys() <= {200, 404}, answers
        assert answers[4][0] in (200, 400), answers[4]
        assert (await pair[1].get(path))[0] == 404
    await agrees(pair[0].store)


@pytest.mark.parametrize("kind", [*POSTS, *TERMS], ids=named)
async def test_of_two_deletions_one_finds_it_gone(pair: tuple[Api, Api], kind: Kind) -> None:
    for number in range(15):
        path = f"/{kind.plural}/{(await pair[0].made(kind.plural, **body_of(kind, f'Name {number}')))['id']}"
        answers = await together(pair[0].delete(path), pair[1].delete(path))
        assert statuses(answers) == {200: 1, 410 if kind.is_post else 404: 1}, answers


@every_post
async def test_what_is_taken_back_before_its_date_is_not_published(
    api: Api, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The author takes it back between the read and the write of maintenance."""
    records = api.store
    body = body_of(kind, "Not yet") | {"date_utc": "2027-01-01 00:00:00"}
    trashed, drafted = [(await api.made(kind.plural, **body))["id"] for _ in range(2)]
    due = {"$set": {"date_utc": records.site.now()}}
    await records.database[kind.plural].update_many({}, due)
    updater = records.publish_due.__self__._updater
    update = updater.update

    async def after_the_author(which: Kind, id: int, *arguments: Any, **options: Any) -> None:
        monkeypatch.setattr(updater, "update", update)
        if id == trashed:
            await api.delete(f"/{kind.plural}/{id}")
        else:
            await api.patch(f"/{kind.plural}/{id}", {"status": "draft"})
        monkeypatch.setattr(updater, "update", after_the_author)
        await update(which, id, *arguments, **options)

    monkeypatch.setattr(updater, "update", after_the_author)
    await records.maintain()
    rows = records.database[kind.plural].find({}, {"status": 1})
    assert {row["_id"]: row["status"] async for row in rows} == {trashed: "trash", drafted: "draft"}


# The tree of categories


@pytest.mark.parametrize("length", [2, 3])
async def test_moves_that_are_harmless_alone_make_no_circle(pair: tuple[Api, Api], length: int) -> None:
    for number in range(20):
        ids = [(await pair[0].made("categories", name=f"{number}-{at}"))["id"] for at in range(length)]
        below = (await pair[0].made("categories", name=f"below {number}", parent=ids[0]))["id"]
        moves = (
            pair[at % 2].patch(f"/categories/{id}", {"parent": ids[(at + 1) % length]})
            for at, id in enumerate(ids)
        )
        answers = await together(*moves)
        assert statuses(answers) == {200: length - 1, 400: 1}, answers
        assert (await pair[0].get(f"/categories/{below}"))[1]["parent"] == ids[0]
    await agrees(pair[0].store)


async def test_children_made_below_a_category_on_the_move_know_their_ancestors(pair: tuple[Api, Api]) -> None:
    tops = [(await pair[0].made("categories", name=f"Top {at}"))["id"] for at in range(2)]
    moving = (await pair[0].made("categories", name="Moving"))["id"]
    for number in range(15):
        creations = (
            pair[n % 2].post("/categories", {"name": f"{number}-{n}", "parent": moving}) for n in range(4)
        )
        answers = await together(
            pair[0].patch(f"/categories/{moving}", {"parent": tops[number % 2]}), *creations
        )
        assert statuses(answers) == {200: 1, 201: 4}, answers
    await agrees(pair[0].store)


async def test_children_made_below_a_category_that_goes_hang_on_something(pair: tuple[Api, Api]) -> None:
    for number in range(15):
        top = (await pair[0].made("categories", name=f"Top {number}"))["id"]
        going = (await pair[0].made("categories", name=f"Going {number}", parent=top))["id"]
        creations = (
            pair[n % 2].post("/categories", {"name": f"{number}-{n}", "parent": going}) for n in range(4)
        )
        answers = await together(pair[0].delete(f"/categories/{going}"), *creations)
        assert answers[0][0] == 200
        assert statuses(answers[1:]).keys() <= {201, 400}, answers
    await agrees(pair[0].store)


@pytest.mark.parametrize("other", ["deletes the parent", "moves it"])
async def test_children_of_a_deleted_category_find_their_place(pair: tuple[Api, Api], other: str) -> None:
    elsewhere = (await pair[0].made("categories", name="Elsewhere"))["id"]
    for number in range(15):
        top = (await pair[0].made("categories", name=f"Top {number}"))["id"]
        middle = (await pair[0].made("categories", name=f"Middle {number}", parent=top))["id"]
        child = (await pair[0].made("categories", name=f"Child {number}", parent=middle))["id"]
        await pair[0].made("categories", name=f"Grandchild {number}", parent=child)
        meanwhile = (
            pair[1].delete(f"/categories/{top}")
            if other == "deletes the parent"
            else pair[1].patch(f"/categories/{middle}", {"parent": elsewhere})
        )
        answers = await together(pair[0].delete(f"/categories/{middle}"), meanwhile)
        assert answers[0][0] == 200
        assert answers[1][0] in (200, 404)
    await agrees(pair[0].store)


async def test_a_refused_move_leaves_the_tree_as_it_was(pair: tuple[Api, Api]) -> None:
    """Moves and renames of one category, each for the state that was read."""
    elsewhere = (await pair[0].made("categories", name="Elsewhere"))["id"]
    moving = (await pair[0].made("categories", name="Moving"))["id"]
    await pair[0].made("categories", name="Below", parent=moving)
    path = f"/categories/{moving}"
    for number in range(20):
        match = {"If-Match": await etag(pair[0], path)}
        parent = 0 if (await pair[0].get(path))[1]["parent"] else elsewhere
        answers = await together(
            pair[0].patch(path, {"parent": parent}, headers=match),
            *(pair[1].patch(path, {"description": f"{number}-{n}"}, headers=match) for n in range(2)),
        )
        assert statuses(answers) == {200: 1, 412: 2}, answers
    await agrees(pair[0].store)


async def test_events_follow_a_tree_in_motion(pair: tuple[Api, Api]) -> None:
    ids = [(await pair[0].made("categories", name=f"C {at}"))["id"] for at in range(6)]
    for id in ids:
        await pair[0].event(categories=[id])
    for number in range(10):
        moves = (
            pair[at % 2].patch(f"/categories/{id}", {"parent": ids[(at * 5 + number) % 6]})
            for at, id in enumerate(ids)
        )
        assert statuses(await together(*moves)).keys() <= {200, 400}
    await agrees(pair[0].store)
    assert await pair[0].store.database[CATEGORY.plural].count_documents({}) == 6


async def test_the_time_of_a_child_does_not_go_back_when_its_parent_is_deleted(api: Api) -> None:
    """Clocks of processes differ: the one that changed the child was ahead."""
    parent = (await api.made("categories", name="Parent"))["id"]
    child = (await api.made("categories", name="Child", parent=parent))["id"]
    later, terms = datetime(2090, 1, 1), api.store.database[CATEGORY.plural]
    await terms.update_one({"_id": child}, {"$set": {"modified_utc": later, "has_own_time": True}})
    assert (await api.delete(f"/categories/{parent}"))[0] == 200
    stored = await terms.find_one({"_id": child})
    assert stored
    assert (stored["parent"], stored["modified_utc"], stored["has_own_time"]) == (0, later, False)


@pytest.mark.parametrize("path", ["/events?", "/changes?since={token}&kinds=events&"])
@pytest.mark.parametrize("filter", ["venue={venue}", "organizer={organizer}", "categories={category}"])
async def test_a_filter_is_not_read_in_vain_while_other_records_of_its_kind_change(
    pair: tuple[Api, Api], monkeypatch: pytest.MonkeyPatch, path: str, filter: str
) -> None:
    """During every read another one is changed; once also a category comes below the one of the filter."""
    reader, writer = pair
    linked = {"venue": {"venue": "Hall"}, "organizer": {"organizer": "Club"}, "categories": ["Music"]}
    names = {
        "token": (await reader.get("/changes"))[1]["next"],
        "venue": (event := await writer.event("Concert", **linked))["venue"]["id"],
        "organizer": event["organizer"][0]["id"],
        "category": event["categories"][0]["id"],
    }
    other = await writer.event(
        "Gig", categories=["Jazz"], venue={"venue": "Club"}, organizer={"organizer": "B"}
    )
    jazz = other["categories"][0]["id"]
    paths = [
        f"/venues/{other['venue']['id']}",
        f"/organizers/{other['organizer'][0]['id']}",
        f"/categories/{jazz}",
    ]
    lists, moves, numbers = reader.store.lists, [{"parent": names["category"]}], count()
    translate = lists.translate

    async def changes_afterwards(*arguments: Any) -> Any:
        found = await translate(*arguments)
        for changed in paths:
            assert (await writer.patch(changed, {"description": f"{next(numbers)}"}))[0] == 200
        if moves:
            assert (await writer.patch(paths[2], moves.pop()))[0] == 200
        return found

    monkeypatch.setattr(lists, "translate", changes_afterwards)
    status, page = await reader.get((path + filter).format(**names))
    assert status == 200, page
    ids = {one["id"] for one in page.get("changes", page.get("events"))}
    assert ids == {event["id"], other["id"]} if "categories" in filter else {event["id"]}
