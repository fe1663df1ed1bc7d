"""Creations with an Idempotency-Key: sent again, at once or later, they create one record."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from handlers.responses.conditions import parsed_key
from schemas import KINDS, Kind
from schemas.errors import InvalidFields
from service.store.records import idempotency
from service.store.records.idempotency import IDEMPOTENCY_KEYS
from tests.checker import agrees
from tests.conftest import Api
from tests.cutting_proxy import CuttingProxy
from tests.samples import named
from tests.test_concurrency import body_of, body_of_event

every_kind = pytest.mark.parametrize("kind", KINDS, ids=named)
Answer = tuple[int, Any]


def keyed(key: str) -> dict[str, dict[str, str]]:
    return {"headers": {"Idempotency-Key": key}}


async def count(api: Api, plural: str) -> int:
    return await api.store.database[plural].count_documents({})


@every_kind
async def test_the_same_key_and_body_answer_the_same_record(api: Api, kind: Kind) -> None:
    path, body = f"/{kind.plural}", body_of(kind, "Once")
    first = await api.post(path, body, **keyed("abc"))
    assert (first[0], "Idempotency-Replayed" in api.headers) == (201, False)
    sent = {name: api.headers[name] for name in ("ETag", "Location", "Last-Modified")}
    for key in ("abc", '"abc"'):
        assert await api.post(path, dict(reversed(body.items())), **keyed(key)) == first
        assert api.headers["Idempotency-Replayed"] == "true"
        assert {name: api.headers[name] for name in sent} == sent
    assert await count(api, kind.plural) == 1


@every_kind
async def test_a_retry_answers_the_record_as_it_was_created(api: Api, kind: Kind) -> None:
    path, body = f"/{kind.plural}", body_of(kind, "Once")
    first = await api.post(path, body, **keyed("abc"))
    record = f"{path}/{first[1]['id']}"
    assert (await api.patch(record, {"description": "Changed"}))[0] == 200
    assert await api.post(path, body, **keyed("abc")) == first
    assert (await api.delete(record))[0] == 200
    assert await api.post(path, body, **keyed("abc")) == first


@every_kind
async def test_a_key_belongs_to_one_body_and_one_kind(api: Api, kind: Kind) -> None:
    path = f"/{kind.plural}"
    assert (await api.post(path, body_of(kind, "Once"), **keyed("abc")))[0] == 201
    for body in (body_of(kind, "Other"), body_of(kind, "Once") | {"description": "more"}, {}):
        status, problem = await api.post(path, body, **keyed("abc"))
        assert (status, problem["code"]) == (422, "rest_idempotency_key_reused")
    other = KINDS[(KINDS.index(kind) + 1) % len(KINDS)]
    assert (await api.post(f"/{other.plural}", body_of(other, "Once"), **keyed("abc")))[0] == 201


async def test_each_caller_has_keys_of_their_own(roles: dict[str, Api]) -> None:
    answers = [
        await roles[name].post("/events", body_of_event("Mine"), **keyed("a"))
        for name in ("author", "editor")
    ]
    assert [status for status, _ in answers] == [201, 201]
    assert len({event["id"] for _, event in answers}) == 2
    assert (await roles["viewer"].post("/events", body_of_event("Mine"), **keyed("a")))[0] == 403


async def test_errors_are_not_kept(api: Api) -> None:
    status, _ = await api.post("/venues", {"venue": "Hall", "website": "nope"}, **keyed("abc"))
    assert status == 400
    status, _ = await api.post("/venues", {"venue": "Hall"}, **keyed("abc"))
    assert (status, await count(api, "venues")) == (201, 1)
    await api.made("tags", name="Jazz")
    for _ in range(2):
        status, problem = await api.post("/tags", {"name": "Jazz"}, **keyed("abc"))
        assert (status, problem["code"]) == (400, "term_exists")


async def test_a_key_is_forgotten_after_a_day(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """MongoDB deletes expired rows later: one that is still there counts as absent."""
    body = {"venue": "Hall"}
    await api.post("/venues", body, **keyed("abc"))
    (row,) = await api.store.database[IDEMPOTENCY_KEYS].find().to_list(None)
    kept = row["expires_at"] - api.store.site.now()
    assert timedelta(hours=23, minutes=59) < kept <= timedelta(hours=24) == idempotency.KEYS_KEPT_FOR
    await api.store.database[IDEMPOTENCY_KEYS].update_one({}, {"$set": {"expires_at": api.store.site.now()}})
    status, _ = await api.post("/venues", body, **keyed("abc"))
    assert (status, "Idempotency-Replayed" in api.headers) == (201, False)
    assert await count(api, "venues") == 2
    await api.post("/venues", body, **keyed("abc"))
    assert (api.headers["Idempotency-Replayed"], await count(api, "venues")) == ("true", 2)


async def test_neither_key_nor_password_is_stored(api: Api) -> None:
    body = body_of_event("Secret", password="correct horse")
    assert (await api.post("/events", body, **keyed("my-key")))[0] == 201
    (row,) = await api.store.database[IDEMPOTENCY_KEYS].find().to_list(None)
    assert "correct horse" not in str(row)
    assert "my-key" not in str(row)


@pytest.mark.parametrize(
    ("header", "key"),
    [
        ("a", "a"),
        (' "8e03978e-40d5" ', "8e03978e-40d5"),
        (r'"a\"b\\"', 'a"b\\'),
        ('a"b', 'a"b'),
        ("x" * 255, "x" * 255),
    ],
)
def test_keys_that_are_accepted(header: str, key: str) -> None:
    assert parsed_key(header) == key


@pytest.mark.parametrize(
    "header", ["", '""', "x" * 256, "a b", "é", '"a', '"a b"', r'"a\b"', '"a";p=1', "a, b", "\x7f"]
)
def test_keys_that_are_refused(header: str) -> None:
    with pytest.raises(InvalidFields) as refused:
        parsed_key(header)
    assert list(refused.value.params) == ["Idempotency-Key"]


async def test_the_answer_to_a_bad_key_names_the_header(api: Api) -> None:
    status, problem = await api.post("/tags", {"name": "Jazz"}, **keyed("a b"))
    assert (status, list(problem["data"]["params"])) == (400, ["Idempotency-Key"])
    assert await count(api, "tags") == 0


async def test_a_body_that_cannot_be_compared_is_refused(api: Api) -> None:
    deep: Any = "x"
    for _ in range(400):
        deep = [deep]
    status, problem = await api.post("/tags", {"name": "Jazz", "other": deep}, **keyed("abc"))
    assert (status, problem["message"]) == (400, "The body is nested too deeply.")
    assert await count(api, "tags") == 0


async def test_an_update_ignores_the_key(api: Api) -> None:
    path = f"/tags/{(await api.made('tags', name='Jazz'))['id']}"
    for name in ("Rock", "Folk"):
        status, tag = await api.post(path, {"name": name}, **keyed("abc"))
        assert (status, tag["name"]) == (200, name)


@every_kind
async def test_the_same_key_at_once_over_two_services(pair: tuple[Api, Api], kind: Kind) -> None:
    more: dict[str, Any] = {"venue": {"venue": "Hall"}, "tags": ["New"]} if kind.name == "event" else {}
    path, body = f"/{kind.plural}", body_of(kind, "Once") | more
    for key in ("a", "b"):
        body[kind.name_field] = f"Name {key}"
        answers = await asyncio.gather(*(pair[n % 2].post(path, body, **keyed(key)) for n in range(40)))
        assert Counter(status for status, _ in answers) == {201: 40}, answers
        assert len({record["id"] for _, record in answers}) == 1
    assert await count(pair[0], kind.plural) == 2
    if kind.name == "event":
        assert await count(pair[0], "venues") == await count(pair[0], "tags") == 1
    await agrees(pair[0].store)


async def test_categories_below_others_are_created_once(pair: tuple[Api, Api]) -> None:
    parent = await pair[0].made("categories", name="Music")
    body = {"name": "Jazz", "parent": parent["id"]}
    answers = await asyncio.gather(*(pair[n % 2].post("/categories", body, **keyed("a")) for n in range(20)))
    assert Counter(status for status, _ in answers) == {201: 20}, answers
    assert await count(pair[0], "categories") == 2
    await agrees(pair[0].store)


async def test_different_bodies_with_one_key_at_once_create_one_record(pair: tuple[Api, Api]) -> None:
    bodies = [{"venue": f"Hall {n}"} for n in range(20)]
    answers = await asyncio.gather(
        *(pair[n % 2].post("/venues", body, **keyed("a")) for n, body in enumerate(bodies))
    )
    assert Counter(status for status, _ in answers) == {201: 1, 422: 19}, answers
    assert await count(pair[0], "venues") == 1


async def test_keys_and_others_in_one_batch(api: Api) -> None:
    """Requests that arrive together are stored together; one that cannot be stored fails alone."""
    requests = [
        api.post("/tags", {"name": f"Tag {n // 2}"}, **(keyed(f"key {n}".replace(" ", "-")) if n % 2 else {}))
        for n in range(40)
    ]
    answers = await asyncio.gather(*requests)
    assert Counter(status for status, _ in answers) == {201: 20, 400: 20}, answers
    assert await count(api, "tags") == 20
    await agrees(api.store)


# A proxy that loses answers


def numbered_body(number: int) -> tuple[str, dict[str, Any]]:
    """One of a thousand records; every second one is an event with links, some of them shared."""
    if number % 2:
        venue = {"venue": f"Venue {number % 40}", "city": "Oslo"}
        return "/events", body_of_event(f"Event {number}", venue=venue, tags=[f"tag {number % 30}", "all"])
    kind = KINDS[1 + number // 2 % 4]
    return f"/{kind.plural}", body_of(kind, f"{kind.name} {number}")


@pytest.mark.slow
async def test_a_thousand_creations_through_a_proxy_that_cuts_a_third_of_the_answers(api: Api) -> None:
    async with CuttingProxy(api.client.port or 0) as proxy:
        turn = asyncio.Semaphore(20)

        async def create(number: int) -> tuple[str, int]:
            path, body = numbered_body(number)
            async with turn:
                return path, await proxy.created(api.store.site.namespace + path, body, f"key-{number}")

        made = await asyncio.gather(*(create(number) for number in range(1000)))
    assert proxy.cut > 200
    assert len(set(made)) == 1000
    stored = {kind.plural: await count(api, kind.plural) for kind in KINDS}
    wanted = Counter(path for path, _ in made)
    # Venues may share names: two that are described at the same moment may both be created.
    linked = {"venues": len(await api.store.database["events"].distinct("venue._id")), "tags": 16}
    assert stored == {kind.plural: wanted[f"/{kind.plural}"] + linked.get(kind.plural, 0) for kind in KINDS}
    await agrees(api.store)
