"""Conditional requests: If-Match, If-Unmodified-Since, If-None-Match and If-Modified-Since."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from handlers import feed_validators
from schemas import KINDS, TAG, Kind
from schemas.site import Site
from schemas.values.dates import http_date
from service.changes.feed import ChangeFeed
from tests.checker import agrees
from tests.conftest import Api, MakeApi
from tests.samples import POSTS, TERMS, named
from tests.test_concurrency import body_of, body_of_event, etag

every_kind = pytest.mark.parametrize("kind", KINDS, ids=named)
every_post = pytest.mark.parametrize("kind", POSTS, ids=named)
METHODS = ("POST", "PUT", "PATCH", "DELETE")
LONG_AGO = "Sat, 01 Jan 2000 00:00:00 GMT"
Answer = tuple[int, Any]


async def addresses(api: Api, kind: Kind) -> tuple[list[str], str]:
    """The paths of a new record, and its ETag."""
    record = await api.made(kind.plural, **body_of(kind, "Name"))
    tag = api.headers["ETag"]
    by_slug = [f"/{kind.plural}/by-slug/{record['slug']}"] if kind.is_post else []
    return [f"/{kind.plural}/{record['id']}", *by_slug], tag


async def change(api: Api, method: str, path: str, **headers: str) -> int:
    """The status of an update or deletion; `If_Match` stands for If-Match."""
    body = None if method == "DELETE" else {"description": f"{method} {path}"}
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return (await api.send(method, path, body, headers=sent))[0]


def statuses(answers: list[Answer]) -> Counter[int]:
    return Counter(status for status, _ in answers)


# Changes


@every_kind
async def test_a_failed_condition_changes_nothing(api: Api, kind: Kind) -> None:
    paths, written = await addresses(api, kind)
    read = await etag(api, paths[0])
    _, before = await api.get(paths[0])
    failing: list[dict[str, str]] = [
        {"If_Match": f"W/{read}"},
        {"If_Match": f"W/{written}"},
        {"If_Match": read.replace("1-", "2-")},
        {"If_Match": f'"x", W/{read}'},
        {"If_Match": ""},
        {"If_Match": read.replace("1-", "2-"), "If_Unmodified_Since": http_date(datetime(2030, 1, 1))},
        {"If_Unmodified_Since": LONG_AGO},
        {"If_None_Match": "*"},
        {"If_None_Match": read},
        {"If_None_Match": f"W/{read}"},
        {"If_Match": read, "If_None_Match": read},
    ]
    for path in paths:
        for method in METHODS:
            for headers in failing:
                assert await change(api, method, path, **headers) == 412, (method, path, headers)
    assert (await api.get(paths[0]))[1] == before


@every_kind
async def test_a_condition_that_holds_lets_the_change_through(api: Api, kind: Kind) -> None:
    paths, tag = await addresses(api, kind)
    for path in paths:
        for method in METHODS[:3]:
            assert await change(api, method, path, If_Match=f'"other", {tag}') == 200
            assert await change(api, method, path, If_Match=await etag(api, paths[0])) == 200
            since = api.headers["Last-Modified"]
            assert await change(api, method, path, If_Unmodified_Since=since) == 200
            assert await change(api, method, path, If_Match="*", If_Unmodified_Since=LONG_AGO) == 200
            assert await change(api, method, path, If_Unmodified_Since="yesterday") == 200
            assert await change(api, method, path, If_None_Match='"99-abc"') == 200
            tag = api.headers["ETag"]
    assert await change(api, "DELETE", paths[-1], If_Match=tag, If_Unmodified_Since=LONG_AGO) == 200


NO_TIMES = ("yesterday", "", "1", "Sat, 99 Jan 2000 00:00:00 GMT", f"Sat, 01 Jan {'9' * 20} 00:00:00 GMT",
            "Sat, 01 Jan 2000 99999999999:00:00 GMT")  # fmt: skip


@pytest.mark.parametrize("time", NO_TIMES)
async def test_what_is_not_a_time_is_ignored(api: Api, time: str) -> None:
    path = f"/tags/{(await api.made('tags', name='Jazz'))['id']}"
    assert await change(api, "PATCH", path, If_Unmodified_Since=time) == 200
    for read in (path, "/tags", "/events.ics", "/events"):
        assert (await api.send("GET", read, headers={"If-Modified-Since": time}))[0] == 200, read


@every_kind
async def test_a_missing_record_is_missing_whatever_the_condition(api: Api, kind: Kind) -> None:
    for method in METHODS:
        for headers in ({"If_Match": "*"}, {"If_Match": '"1-ab"'}, {"If_None_Match": "*"}):
            assert await change(api, method, f"/{kind.plural}/4711", **headers) == 404


async def test_a_tag_of_another_record_with_the_same_version_does_not_match(api: Api) -> None:
    (path,), tag = await addresses(api, TAG)
    other = f"/tags/{(await api.made('tags', name='Other'))['id']}"
    assert await change(api, "PATCH", other, If_Match=tag) == 412
    version, digest, view = tag.strip('"').split("-")
    for wrong in (f'"{version}-{digest[::-1]}-{view}"', f'"{version}-{view}"', f'"{version}"'):
        assert await change(api, "PATCH", path, If_Match=wrong) == 412, wrong
    assert await change(api, "PATCH", path, If_Match=tag) == 200


async def test_a_category_that_was_moved_is_unmodified_since_the_time_it_tells(api: Api) -> None:
    parent = await api.made("categories", name="Parent")
    child = await api.made("categories", name="Child", parent=parent["id"])
    await api.delete(f"/categories/{parent['id']}")
    path = f"/categories/{child['id']}"
    await api.get(path)
    assert await change(api, "PATCH", path, If_Unmodified_Since=api.headers["Last-Modified"]) == 200


async def test_tags_in_several_lines_are_one_list(api: Api) -> None:
    (path,), _ = await addresses(api, TAG)
    await api.get(path)
    lines = [("If-None-Match", '"other"'), ("If-None-Match", api.headers["ETag"])]
    async with api.client.get(api.store.site.namespace + path, headers=lines) as answer:
        assert answer.status == 304


async def test_the_tag_of_a_compressed_answer_is_a_strong_one(api: Api) -> None:
    event = await api.event(description="word " * 400)
    path = f"/events/{event['id']}"
    await api.send("GET", path, headers={"Accept-Encoding": "gzip"})
    tag = api.headers["ETag"]
    assert (api.headers["Content-Encoding"], tag.startswith('"')) == ("gzip", True)
    assert await change(api, "PATCH", path, If_Match=tag) == 200
    assert await change(api, "DELETE", path, If_Match=tag) == 412


@every_kind
async def test_of_a_hundred_changes_with_one_tag_exactly_one_is_made(
    pair: tuple[Api, Api], kind: Kind
) -> None:
    (path, *_), tag = await addresses(pair[0], kind)
    match = {"headers": {"If-Match": tag}}
    patches = (pair[n % 2].patch(path, {"description": f"{n}"}, **match) for n in range(100))
    answers = list(await asyncio.gather(*patches))
    assert statuses(answers) == {200: 1, 412: 99}, answers
    (won,) = (record["description"] for status, record in answers if status == 200)
    assert (await pair[1].get(path))[1]["description"] == won


@every_kind
async def test_of_a_hundred_deletions_with_one_tag_exactly_one_is_made(
    pair: tuple[Api, Api], kind: Kind
) -> None:
    """Others find a newer version, or a record that is not there any more."""
    (path, *_), tag = await addresses(pair[0], kind)
    deletions = (pair[n % 2].delete(path, headers={"If-Match": tag}) for n in range(100))
    found = statuses(list(await asyncio.gather(*deletions)))
    assert found[200] == 1
    assert found.keys() <= {200, 412, 410 if kind.is_post else 404}
    await agrees(pair[0].store)


@every_kind
async def test_of_changes_unmodified_since_a_time_none_is_lost(pair: tuple[Api, Api], kind: Kind) -> None:
    """The record that is checked is the one that is replaced: a later one is checked again."""
    (path, *_), _ = await addresses(pair[0], kind)
    past = datetime.now(UTC).replace(tzinfo=None, microsecond=0) - timedelta(minutes=1)
    id = int(path.rpartition("/")[2])
    await pair[0].store.database[kind.plural].update_one({"_id": id}, {"$set": {"modified_utc": past}})
    since = {"headers": {"If-Unmodified-Since": http_date(past)}}
    patches = (pair[n % 2].patch(path, {"description": f"{n}"}, **since) for n in range(20))
    answers = list(await asyncio.gather(*patches))
    assert statuses(answers) == {200: 1, 412: 19}, answers


@every_kind
async def test_changes_without_conditions_to_different_fields_all_survive(
    pair: tuple[Api, Api], kind: Kind
) -> None:
    (path, *_), _ = await addresses(pair[0], kind)
    for number in range(10):
        name, words = f"Name {number}", f"Words {number}"
        answers = await asyncio.gather(
            pair[0].patch(path, {kind.name_field: name}), pair[1].patch(path, {"description": words})
        )
        assert statuses(list(answers)) == {200: 2}
        _, now = await pair[0].get(path)
        assert (now[kind.name_field], words in now["description"]) == (name, True)


# Creations


def sluggish(kind: Kind, name: str) -> dict[str, Any]:
    """A body with a slug, if a new record of this kind can have one; otherwise its name makes it."""
    return body_of(kind, name) | ({"slug": "chosen"} if "slug" in kind.body_schema().fields else {})


@every_kind
async def test_of_a_hundred_creations_of_one_slug_exactly_one_is_made(
    pair: tuple[Api, Api], kind: Kind
) -> None:
    new = {"headers": {"If-None-Match": "*"}}
    body = sluggish(kind, "Chosen")
    posts = (pair[n % 2].post(f"/{kind.plural}", body, **new) for n in range(100))
    answers = list(await asyncio.gather(*posts))
    assert statuses(answers) == {201: 1, 412: 99}, answers
    (won,) = (record for status, record in answers if status == 201)
    assert won["slug"] == "chosen"
    assert await pair[0].store.database[kind.plural].count_documents({}) == 1
    await agrees(pair[0].store)


async def test_conditional_and_other_creations_of_one_slug_at_once(pair: tuple[Api, Api]) -> None:
    """Only one record has the slug itself. Those without the condition get another one. All of them create
    linked records, so that they are stored in transactions."""

    def post(number: int) -> Any:
        headers = {"If-None-Match": "*"} if number % 3 == 0 else {}
        body = body_of_event("Same", venue={"venue": "Hall"}, tags=[f"tag {number}"])
        return pair[number % 2].post("/events", body, headers=headers)

    answers = list(await asyncio.gather(*(post(number) for number in range(60))))
    slugs = [event["slug"] for status, event in answers if status == 201]
    assert statuses(answers).keys() <= {201, 412}, answers
    assert len(slugs) in (40, 41)
    assert len(set(slugs)) == len(slugs)
    assert {answers[n][0] for n in range(60) if n % 3} == {201}
    await agrees(pair[0].store)


@every_post
async def test_a_slug_in_the_trash_is_free(api: Api, kind: Kind) -> None:
    new = {"headers": {"If-None-Match": "*"}}
    path = f"/{kind.plural}"
    status, first = await api.post(path, body_of(kind, "Name"), **new)
    assert (status, (await api.post(path, body_of(kind, "Name"), **new))[0]) == (201, 412)
    assert (await api.post(path, body_of(kind, "Name"), headers={"If-None-Match": '"1-ab"'}))[1][
        "slug"
    ] == "name-2"
    await api.delete(f"{path}/{first['id']}")
    assert (await api.post(path, body_of(kind, "Name"), **new))[1]["slug"] == "name"


async def test_what_is_wrong_with_a_body_is_told_before_its_condition(api: Api) -> None:
    await api.event("Name")
    body = body_of_event("Name", website="nope")
    assert (await api.post("/events", body, headers={"If-None-Match": "*"}))[0] == 400


# Reading


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the clock of the service, in seconds from now, and that of MongoDB, unless it is `alone`."""
    began = datetime.now(UTC).replace(tzinfo=None, microsecond=0)

    def set_to(seconds: int, *, alone: bool = False) -> datetime:
        now = began + timedelta(seconds=seconds)
        monkeypatch.setattr(Site, "now", lambda site: now)
        if not alone:
            monkeypatch.setattr(ChangeFeed, "now", now)
        return now

    return set_to


async def since(api: Api, path: str, time: str, **more: str) -> int:
    headers = {"If-Modified-Since": time} | {name.replace("_", "-"): value for name, value in more.items()}
    return (await api.send("GET", path, headers=headers))[0]


@every_kind
async def test_records_have_the_time_of_their_last_change(api: Api, kind: Kind, clock: Any) -> None:
    made = clock(10)
    record = await api.made(kind.plural, **body_of(kind, "Name"))
    assert api.headers["Last-Modified"] == http_date(made)
    path = f"/{kind.plural}/{record['id']}"
    changed = clock(20)
    for method, where, body in (
        ("PATCH", path, {"description": "x"}),
        ("GET", path, None),
        ("HEAD", path, None),
    ):
        assert (await api.send(method, where, body))[0] == 200
        assert api.headers["Last-Modified"] == http_date(changed)


@every_post
async def test_a_record_that_has_not_changed_since_is_not_sent(api: Api, kind: Kind, clock: Any) -> None:
    clock(10)
    record = await api.made(kind.plural, **body_of(kind, "Name"))
    path, told = f"/{kind.plural}/{record['id']}", api.headers["Last-Modified"]
    assert [await since(api, path, time) for time in (told, LONG_AGO, "yesterday")] == [304, 200, 200]
    assert await since(api, path, told, If_None_Match='"other"') == 200
    clock(20)
    await api.patch(path, {"description": "Later"})
    later = api.headers["Last-Modified"]
    assert [await since(api, path, time) for time in (told, later)] == [200, 304]
    await api.patch(path, {"description": "In the same second"})
    assert api.headers["Last-Modified"] == later
    assert await since(api, path, later) == 200


async def test_a_change_to_a_venue_changes_its_events(api: Api, clock: Any) -> None:
    clock(10)
    event = await api.event(venue={"venue": "Hall"})
    told = api.headers["Last-Modified"]
    await api.patch(f"/venues/{event['venue']['id']}", {"venue": "Arena"})
    assert await since(api, f"/events/{event['id']}", told) == 200
    clock(20)
    await api.patch(f"/venues/{event['venue']['id']}", {"venue": "Stadium"})
    assert await since(api, f"/events/{event['id']}", told) == 200
    assert api.headers["Last-Modified"] != told


async def test_the_clock_of_another_process_may_be_behind(api: Api, clock: Any) -> None:
    clock(20)
    event = await api.event()
    told = api.headers["Last-Modified"]
    for seconds in (15, 18, 20):
        clock(seconds)
        await api.patch(f"/events/{event['id']}", {"description": f"{seconds}"})
        assert api.headers["Last-Modified"] == told
        assert await since(api, f"/events/{event['id']}", told) == 200


async def test_a_new_process_may_have_other_settings(make_api: MakeApi, api: Api, clock: Any) -> None:
    clock(10)
    event = await api.event(cost="5")
    told = api.headers["Last-Modified"]
    clock(20)
    other = await make_api(currency_symbol="€")
    assert await since(api, f"/events/{event['id']}", told) == 304
    assert await since(other, f"/events/{event['id']}", told) == 200


@pytest.mark.parametrize("kind", TERMS, ids=named)
async def test_the_number_of_events_of_a_term_is_part_of_it(api: Api, kind: Kind, clock: Any) -> None:
    clock(-100)
    term = await api.made(kind.plural, name="Jazz")
    path = f"/{kind.plural}/{term['id']}"
    await api.get(path)
    told = api.headers["Last-Modified"]
    event = await api.event(**{kind.plural: [term["id"]]})
    assert event
    assert await since(api, path, told) == 200
    assert api.headers["Last-Modified"] != told


@every_kind
async def test_a_list_that_has_not_changed_since_is_not_sent(
    api: Api, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_validators, "LATE_SECONDS", -100)
    shown = {"hide_empty": "false"} if not kind.is_post else {}
    path = f"/{kind.plural}?" + "&".join(f"{name}={value}" for name, value in shown.items())
    await api.made(kind.plural, **body_of(kind, "Name"))
    for _ in range(2):  # the first one may be read together with the change
        await api.get(path)
    told = api.headers["Last-Modified"]
    assert [await since(api, path, time) for time in (told, LONG_AGO, "yesterday")] == [304, 200, 200]
    assert await since(api, path, told, If_None_Match='"other"') == 200
    await asyncio.sleep(1)
    await api.made(kind.plural, **body_of(kind, "Other"))
    assert await since(api, path, told) == 200


async def test_a_change_by_another_process_is_noticed(
    pair: tuple[Api, Api], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by a process that has not rendered the list yet."""
    monkeypatch.setattr(feed_validators, "LATE_SECONDS", -100)
    await pair[0].event()
    await pair[0].get("/events")
    told = pair[0].headers["Last-Modified"]
    await pair[1].get("/venues")  # it knows the changes until now
    await asyncio.sleep(1)
    await pair[0].event("Other")
    assert await since(pair[1], "/events", told) == 200


async def test_right_after_a_change_a_list_is_sent_again(api: Api, clock: Any) -> None:
    """More changes may follow in the same second. Later, the time of the last change is certain."""
    await api.event()
    for path in ("/events", "/events?start_date=now"):
        clock(1)
        await api.get(path)
        assert await since(api, path, api.headers["Last-Modified"]) == 200
    clock(60)
    await api.get("/events")
    assert await since(api, "/events", api.headers["Last-Modified"]) == 304
    await api.get("/events?start_date=now")
    assert await since(api, "/events?start_date=now", api.headers["Last-Modified"]) == 200


async def test_the_clock_of_the_service_may_be_ahead_of_the_database(api: Api, clock: Any) -> None:
    """Changes have the time of the database: more may follow that have the same."""
    clock(60, alone=True)
    event = await api.event()
    for number in range(10):  # most of them in the same second as the one before
        await api.get("/events")
        told = api.headers["Last-Modified"]
        await api.patch(f"/events/{event['id']}", {"title": f"Title {number}"})
        assert await since(api, "/events", told) == 200


async def test_a_list_changes_at_midnight(api: Api, clock: Any) -> None:
    clock(60)
    await api.event()
    await api.get("/events")
    told = api.headers["Last-Modified"]
    clock(60 + 86400)
    assert await since(api, "/events", told) == 200
