"""What is remembered of links is not used when it is no longer so, whoever has changed it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from schemas import CATEGORY, KINDS, TAG, VENUE, Kind
from service.store import known_links
from service.store.links.fanout import FIELD
from service.store.links.resolving import Links
from tests.checker import agrees
from tests.conftest import Api
from tests.samples import named

LINKABLE = [kind for kind in KINDS if kind.name in FIELD]
Pair = tuple[Api, Api]
every_linked = pytest.mark.parametrize("kind", LINKABLE, ids=named)
every_term = pytest.mark.parametrize("kind", [CATEGORY, TAG], ids=named)
EVENT = {"title": "Event", "start_date": "2027-06-01", "end_date": "2027-06-02"}


def shown(event: Any, kind: Kind) -> list[Any]:
    """The titles of what an event links to."""
    found = event[FIELD[kind.name]]
    return [one[kind.name_field] for one in (found if isinstance(found, list) else [found])]


async def remembered(api: Api, kind: Kind, link: Any) -> dict[str, Any]:
    """The body of an event with a link that this process has seen and will not look for again."""
    body = EVENT | {FIELD[kind.name]: [link]}
    for _ in range(2):  # the first epoch of a new database begins with the first event
        assert (await api.post("/events", body))[0] == 201
    assert (kind.name, link) in api.store._known_links._sure
    return body


@every_linked
async def test_a_change_by_another_process_shows_in_the_next_event(pair: Pair, kind: Kind) -> None:
    record = await pair[0].made(kind.plural, **{kind.name_field: "Old name"})
    body = await remembered(pair[0], kind, record["id"])
    assert (await pair[1].patch(f"/{kind.plural}/{record['id']}", {kind.name_field: "New name"}))[0] == 200
    for _ in range(2):
        status, event = await pair[0].post("/events", body)
        assert (status, shown(event, kind)) == (201, ["New name"])
    await agrees(pair[0].store)


@every_term
async def test_a_term_that_another_process_has_deleted_is_not_there(pair: Pair, kind: Kind) -> None:
    term = await pair[0].made(kind.plural, name="Name")
    body = await remembered(pair[0], kind, term["id"])
    assert (await pair[1].delete(f"/{kind.plural}/{term['id']}"))[0] == 200
    status, problem = await pair[0].post("/events", body)
    assert (status, list(problem["data"]["params"])) == (400, [FIELD[kind.name]])
    await agrees(pair[0].store)


@every_linked
async def test_a_change_while_the_event_is_stored_is_followed(
    pair: Pair, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The epoch ends after it was looked at, and before the event is there for others to see."""
    record = await pair[0].made(kind.plural, **{kind.name_field: "Old name"})
    body = await remembered(pair[0], kind, record["id"])
    inserts = pair[0].store._inserts
    many = inserts.many

    async def late(*arguments: Any) -> Any:
        path = f"/{kind.plural}/{record['id']}"
        assert (await pair[1].patch(path, {kind.name_field: "New name"}))[0] == 200
        return await many(*arguments)

    monkeypatch.setattr(inserts, "many", late)
    status, event = await pair[0].post("/events", body)
    assert (status, shown(event, kind)) == (201, ["New name"])
    monkeypatch.undo()
    await agrees(pair[0].store)


@every_linked
async def test_the_epoch_ends_before_events_are_looked_for(
    pair: Pair, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is stored after the look, and before the change is acknowledged, shows the change."""
    record = await pair[0].made(kind.plural, **{kind.name_field: "Old name"})
    body = await remembered(pair[0], kind, record["id"])
    copies, seen = pair[1].store.fanout, []
    show = copies._show

    async def with_a_newcomer(*arguments: Any) -> None:
        await show(*arguments)
        seen.append(await pair[0].post("/events", body))

    monkeypatch.setattr(copies, "_show", with_a_newcomer)
    assert (await pair[1].patch(f"/{kind.plural}/{record['id']}", {kind.name_field: "New name"}))[0] == 200
    ((status, event),) = seen
    assert (status, shown(event, kind)) == (201, ["New name"])
    await agrees(pair[0].store)


async def test_what_changes_while_it_is_looked_for_is_not_remembered(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    venue, other = [await pair[0].made("venues", venue="Old name") for _ in range(2)]
    await remembered(pair[0], VENUE, other["id"])
    look = Links._look

    async def late(links: Links, asked: Any) -> Any:
        found = await look(links, asked)
        monkeypatch.undo()
        assert (await pair[1].patch(f"/venues/{venue['id']}", {"venue": "New name"}))[0] == 200
        return found

    monkeypatch.setattr(Links, "_look", late)
    for _ in range(2):
        assert shown(await pair[0].event(venue=venue["id"]), VENUE) == ["New name"]


@every_term
async def test_a_new_record_beside_one_that_is_gone(pair: Pair, kind: Kind) -> None:
    """A draft is always a new record: it is not looked for, and all else is remembered."""
    term = await pair[0].made(kind.plural, name="Name")
    body = await remembered(pair[0], kind, term["id"])
    draft = {"organizer": [{"organizer": "Club", "status": "draft"}]}
    assert (await pair[0].post("/events", body | draft))[0] == 201
    assert (await pair[1].delete(f"/{kind.plural}/{term['id']}"))[0] == 200
    status, problem = await pair[0].post("/events", body | draft)
    assert (status, list(problem["data"]["params"])) == (400, [FIELD[kind.name]])
    assert len(await pair[0].ids("organizers", status="draft")) == 1
    await agrees(pair[0].store)


async def test_a_text_means_what_has_it_as_its_slug(api: Api) -> None:
    """Also when that was made after another one was found by its name."""
    await api.made("tags", name="jazz", slug="old-music")
    for _ in range(2):
        assert shown(await api.event(tags=["jazz"]), TAG) == ["jazz"]
    await api.made("tags", name="Newer", slug="jazz")
    assert shown(await api.event(tags=["jazz"]), TAG) == ["Newer"]


@every_term
async def test_digits_mean_what_has_them_as_its_id(api: Api, kind: Kind) -> None:
    """Also when that was made after another one was found by its slug."""
    first = await api.made(kind.plural, name="First")
    later = str(first["id"] + 3)
    await api.made(kind.plural, name="By slug", slug=later)
    for _ in range(3):
        assert shown(await api.event(**{kind.plural: [later]}), kind) == ["By slug"]
    for name in ("Second", "By id"):
        last = await api.made(kind.plural, name=name)
    assert str(last["id"]) == later
    for _ in range(3):
        assert shown(await api.event(**{kind.plural: [later]}), kind) == ["By id"]
    assert (kind.name, later) in api.store._known_links._sure


async def test_a_name_means_the_oldest_that_has_it(api: Api) -> None:
    """Also when a younger one is remembered by its id."""
    top = await api.made("categories", name="Top")
    oldest = await api.made("categories", name="Fine Arts")
    younger = await api.made("categories", name="Fine Arts", parent=top["id"])
    await remembered(api, CATEGORY, younger["id"])
    for _ in range(2):
        event = await api.event(categories=["Fine Arts"])
        assert [one["id"] for one in event["categories"]] == [oldest["id"]]


@every_term
async def test_names_and_slugs_are_remembered(api: Api, kind: Kind) -> None:
    term = await api.made(kind.plural, name="Live Music")
    for text in ("Live Music", term["slug"]):
        await remembered(api, kind, text)
        assert shown(await api.event(**{kind.plural: [text]}), kind) == ["Live Music"]


async def test_what_is_long_is_not_remembered(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_links, "LONGEST", 20)
    venues = [await api.made("venues", venue="Hall", description="x" * length) for length in (5, 100)]
    for venue in venues * 2:
        assert shown(await api.event(venue=venue["id"]), VENUE) == ["Hall"]
    assert api.store._known_links._sure == {("venue", venues[0]["id"])}


async def test_not_all_is_remembered_for_ever(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_links, "MOST", 3)
    tags = [(await api.made("tags", name=f"Tag {number}"))["id"] for number in range(10)]
    for tag in tags * 2:
        assert len(shown(await api.event(tags=[tag]), TAG)) == 1
        assert len(api.store._known_links._sure) <= 4


async def test_an_epoch_that_was_lost_is_followed_by_another(api: Api) -> None:
    venue = await api.made("venues", venue="Hall")
    body = await remembered(api, VENUE, venue["id"])
    await api.store.database["counters"].delete_one({"_id": "epoch"})
    epoch = api.store.fanout.epoch
    assert (await api.post("/events", body))[0] == 201
    assert await epoch.now()
    assert await epoch.now() == await epoch.now()


async def test_many_events_while_their_venue_changes(pair: Pair) -> None:
    venue = await pair[0].made("venues", venue="Name")
    body = EVENT | {"venue": venue["id"]}

    async def rename() -> None:
        for number in range(20):
            assert (await pair[1].patch(f"/venues/{venue['id']}", {"venue": f"Name {number}"}))[0] == 200

    async def create() -> None:
        for _ in range(15):
            assert (await pair[0].post("/events", body))[0] == 201

    await asyncio.gather(rename(), *(create() for _ in range(8)))
    _, found = await pair[0].get("/events", per_page="50")
    assert {shown(event, VENUE)[0] for event in found["events"]} == {"Name 19"}
    await agrees(pair[0].store)
