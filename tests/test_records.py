"""Every kind of record takes the same path: create, read, list, update, delete."""

from __future__ import annotations

from typing import Any

import pytest
from pymongo.errors import AutoReconnect

from schemas import CATEGORY, EVENT, KINDS, Kind
from schemas.caller import EVERYBODY
from schemas.kind import load
from schemas.site import Site
from service.mongo import bulk_writes
from service.store.records import building
from tests.conftest import Api
from tests.samples import POSTS, TERMS, named

every_kind = pytest.mark.parametrize("kind", KINDS, ids=named)
every_post = pytest.mark.parametrize("kind", POSTS, ids=named)
every_term = pytest.mark.parametrize("kind", TERMS, ids=named)


@every_kind
async def test_created_record_is_read_back_as_answered(api: Api, kind: Kind) -> None:
    status, created = await api.post(f"/{kind.plural}", dict(kind.example))
    assert (status, api.headers["Location"]) == (201, f"{api.store.site.api}/{kind.plural}/{created['id']}")
    status, read = await api.get(f"/{kind.plural}/{created['id']}")
    read.pop("json_ld", None)
    assert (status, read) == (200, created)
    assert created[kind.name_field] == kind.example[kind.name_field]


@every_kind
async def test_every_key_of_the_shape_is_shown(api: Api, kind: Kind) -> None:
    shown = await api.made(kind.plural, **kind.example)
    only_on_some = {"json_ld", "warnings"} | ({"parent"} if kind.name == "tag" else set())
    assert shown.keys() == kind.response_schema().fields.keys() - only_on_some


@every_kind
async def test_missing_and_bad_fields_are_all_named_and_nothing_is_written(api: Api, kind: Kind) -> None:
    required = [name for name, field in kind.body_schema().fields.items() if field.required]
    status, problem = await api.post(f"/{kind.plural}", {})
    assert (status, problem["code"]) == (400, "rest_missing_callback_param")
    assert sorted(problem["data"]["params"]) == sorted(required)
    status, problem = await api.post(
        f"/{kind.plural}", dict(kind.example) | {kind.name_field: [], "description": 5}
    )
    assert (status, problem["code"]) == (400, "rest_invalid_param")
    assert set(problem["data"]["params"]) == {kind.name_field, "description"}
    assert await api.ids(kind.plural, **({} if kind.is_post else {"hide_empty": "0"})) == []


@every_kind
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
async def test_update_changes_what_is_sent_and_keeps_the_rest(api: Api, kind: Kind, method: str) -> None:
    created = await api.made(kind.plural, **kind.example)
    status, updated = await api.send(method, f"/{kind.plural}/{created['id']}", {"description": "New words"})
    assert (status, updated["description"]) == (200, "New words")
    moving = {"description", "modified", "modified_utc"}
    assert {k: v for k, v in updated.items() if k not in moving} == {
        k: v for k, v in created.items() if k not in moving
    }


MOVED = [
    *((kind, {kind.name_field: "Another name"}) for kind in KINDS),
    *((kind, {"slug": "another"}) for kind in TERMS),
    *((kind, {"status": "trash"}) for kind in POSTS),
    *((kind, {"status": "future", "date": "2032-01-01 10:00:00"}) for kind in POSTS),
    (CATEGORY, {"parent": "Above"}),
    (EVENT, {"start_date": "2032-01-01", "end_date": "2032-01-02", "all_day": True}),
    (EVENT, {"password": "secret", "new_password": "hidden"}),
    (EVENT, {"venue": {"venue": "New"}, "tags": ["new", "newer"]}),
    (EVENT, {"venue": None, "description": None}),
]


@pytest.mark.parametrize(("kind", "body"), MOVED, ids=lambda value: getattr(value, "name", None))
async def test_an_update_knows_the_record_that_is_stored(api: Api, kind: Kind, body: dict[str, Any]) -> None:
    record = await api.made(kind.plural, **kind.example)
    if "parent" in body:
        body = body | {"parent": (await api.made(kind.plural, name=body["parent"]))["id"]}
    sent = load(kind.body_schema, body, Site(), partial=True)
    told = await api.store.update(kind, record["id"], sent, EVERYBODY)
    assert told == await api.store.find(kind, record["id"])


@every_kind
async def test_null_clears_an_optional_field_and_not_a_required_one(api: Api, kind: Kind) -> None:
    record = await api.made(kind.plural, **dict(kind.example) | {"description": "Words"})
    path = f"/{kind.plural}/{record['id']}"
    status, cleared = await api.patch(path, {"description": None})
    assert (status, cleared["description"]) == (200, "")
    status, problem = await api.patch(path, {kind.name_field: None})
    assert (status, list(problem["data"]["params"])) == (400, [kind.name_field])


@every_kind
async def test_unknown_id_is_not_found_by_any_method(api: Api, kind: Kind) -> None:
    for method, body in (("GET", None), ("DELETE", None), ("POST", {}), ("PUT", {}), ("PATCH", {})):
        for id in ("4711", "0", str(2**63), "9" * 5000):
            status, problem = await api.send(method, f"/{kind.plural}/{id}", body)
            assert (status, problem["code"]) == (404, f"{kind.name}-not-found"), (method, id[:20])


@every_post
async def test_record_is_addressed_by_slug_too(api: Api, kind: Kind) -> None:
    record = await api.made(kind.plural, **kind.example)
    path = f"/{kind.plural}/by-slug/{record['slug']}"
    assert (await api.get(path))[1]["id"] == record["id"]
    for method in ("POST", "PUT", "PATCH"):
        status, updated = await api.send(method, path, {"description": method})
        assert (status, updated["id"], updated["description"]) == (200, record["id"], method)
    status, renamed = await api.patch(path, {"slug": "Another Name"})
    assert (status, renamed["slug"]) == (200, "another-name")
    assert (await api.get(path))[0] == 404
    assert (await api.delete(f"/{kind.plural}/by-slug/another-name"))[0] == 200


@every_term
async def test_terms_have_no_slug_routes(api: Api, kind: Kind) -> None:
    status, problem = await api.get(f"/{kind.plural}/by-slug/x")
    assert (status, problem["code"]) == (404, "rest_no_route")


@every_post
async def test_deleted_record_is_in_the_trash_and_comes_back_with_a_status(api: Api, kind: Kind) -> None:
    record = await api.made(kind.plural, **kind.example)
    path = f"/{kind.plural}/{record['id']}"
    status, trashed = await api.delete(path)
    assert (status, trashed["status"], trashed["slug"]) == (200, "trash", record["slug"] + "__trashed")
    for method in ("GET", "DELETE"):
        status, problem = await api.send(method, path)
        assert (status, problem["code"]) == (410, f"{kind.name}-is-in-trash")
    assert (await api.get(f"/{kind.plural}/by-slug/{record['slug']}"))[0] == 404
    assert await api.ids(kind.plural) == []
    status, kept = await api.patch(path, {"description": "still in the trash"})
    assert (status, kept["status"]) == (200, "trash")
    status, back = await api.patch(path, {"status": "draft"})
    assert (status, back["status"], back["slug"]) == (200, "draft", record["slug"])


@every_post
async def test_restored_record_finds_its_slug_taken(api: Api, kind: Kind) -> None:
    first = await api.made(kind.plural, **kind.example)
    await api.delete(f"/{kind.plural}/{first['id']}")
    second = await api.made(kind.plural, **kind.example)
    assert second["slug"] == first["slug"]
    _, back = await api.patch(f"/{kind.plural}/{first['id']}", {"status": "publish"})
    assert back["slug"] == first["slug"] + "-2"


@every_term
async def test_deleted_term_is_gone_for_good_and_events_lose_it(api: Api, kind: Kind) -> None:
    record = await api.made(kind.plural, **kind.example)
    event = await api.event(**{kind.plural: [record["id"]]})
    status, answered = await api.delete(f"/{kind.plural}/{record['id']}")
    assert (status, answered) == (200, record | {"count": 1})
    assert (await api.get(f"/{kind.plural}/{record['id']}"))[0] == 404
    assert (await api.get(f"/events/{event['id']}"))[1][kind.plural] == []


@every_kind
async def test_walking_the_pages_visits_every_record_once(api: Api, kind: Kind) -> None:
    made = {
        (await api.made(kind.plural, **dict(kind.example) | {kind.name_field: f"Name {number}"}))["id"]
        for number in range(7)
    }
    seen: list[int] = []
    query = {"per_page": "3"} | ({} if kind.is_post else {"hide_empty": "0", "search": "näme"})
    status, page = await api.get(f"/{kind.plural}", **query)
    assert (page["total"], page["total_pages"], "previous_rest_url" in page) == (7, 3, False)
    assert (api.headers["X-TEC-Total"], api.headers["X-TEC-TotalPages"]) == ("7", "3")
    while True:
        seen += [record["id"] for record in page[kind.plural]]
        if "next_rest_url" not in page:
            break
        assert f'<{page["next_rest_url"]}>; rel="next"' in api.headers["Link"]
        _, page = await api.get(page["next_rest_url"].removeprefix(api.store.site.api))
    assert (sorted(seen), len(seen)) == (sorted(made), 7)
    assert 'rel="prev"' in api.headers["Link"]
    status, problem = await api.get(f"/{kind.plural}", **query | {"page": "4"})
    assert (status, problem["code"]) == (404, f"{kind.name}-archive-page-not-found")


@every_kind
@pytest.mark.parametrize(
    ("name", "value"), [("page", "0"), ("page", "x"), ("per_page", "-1"), ("per_page", "1.5")]
)
async def test_page_numbers_must_be_whole_and_positive(api: Api, kind: Kind, name: str, value: str) -> None:
    status, problem = await api.get(f"/{kind.plural}", **{name: value})
    assert (status, list(problem["data"]["params"])) == (400, [name])


@every_kind
async def test_large_pages_are_lowered_to_the_maximum(make_api, kind: Kind) -> None:  # type: ignore[no-untyped-def]
    api = await make_api(max_per_page=2)
    for number in range(3):
        await api.made(kind.plural, **dict(kind.example) | {kind.name_field: f"Name {number}"})
    extra = {} if kind.is_post else {"hide_empty": "0"}
    _, page = await api.get(f"/{kind.plural}", per_page="1000", **extra)
    assert (len(page[kind.plural]), page["total_pages"]) == (2, 2)


@every_kind
async def test_if_match_guards_updates_and_if_none_match_saves_reading(api: Api, kind: Kind) -> None:
    record = await api.made(kind.plural, **kind.example)
    path = f"/{kind.plural}/{record['id']}"
    await api.get(path)
    tag = api.headers["ETag"]
    assert (await api.send("GET", path, headers={"If-None-Match": tag}))[0] == 304
    assert (await api.patch(path, {"description": "1"}, headers={"If-Match": tag}))[0] == 200
    status, problem = await api.patch(path, {"description": "2"}, headers={"If-Match": tag})
    assert (status, problem["code"]) == (412, "rest_precondition_failed")
    assert (await api.delete(path, headers={"If-Match": tag}))[0] == 412
    assert (await api.get(path))[1]["description"] == "1"


@pytest.mark.parametrize("failing", ["events", "venues", "words"])
async def test_a_creation_that_fails_leaves_its_slugs_free(
    api: Api, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    insert, fails = bulk_writes.insert_each, [True]

    async def fail_once(collection: Any, *rows: Any) -> Any:
        if collection.name == failing and fails:
            fails.pop()
            raise AutoReconnect("the primary is gone")
        return await insert(collection, *rows)

    for module in (building, bulk_writes):
        monkeypatch.setattr(module, "insert_each", fail_once)
    times = {"start_date": "2027-06-01", "end_date": "2027-06-01"}
    body = {"title": "Jazz", "venue": {"venue": "Hall"}, **times}
    assert (await api.post("/events", body))[0] == 503
    status, event = await api.post("/events", body)
    assert (status, event["slug"], event["venue"]["slug"]) == (201, "jazz", "hall")


async def test_children_of_a_deleted_category_change_at_a_whole_second(api: Api) -> None:
    parent = await api.made("categories", name="Music")
    child = await api.made("categories", name="Jazz", parent=parent["id"])
    await api.delete(f"/categories/{parent['id']}")
    stored = await api.store.database["categories"].find_one({"_id": child["id"]})
    assert stored
    assert stored["modified_utc"].microsecond == 0


async def test_long_slugs_come_back_from_the_trash(api: Api) -> None:
    ids = []
    for _ in range(3):
        ids.append((await api.event("Long", slug="x" * 199))["id"])
        await api.delete(f"/events/{ids[-1]}")
    for id in ids:
        _, restored = await api.patch(f"/events/{id}", {"status": "publish"})
        assert restored["slug"] == "x" * 199
        await api.delete(f"/events/{id}")
