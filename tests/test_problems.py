"""Everything that is wrong with a request is told at once; what is only unusual is told as a warning."""

from __future__ import annotations

from typing import Any

import pytest

from schemas import KINDS, Kind
from tests.conftest import Api

TIMES = {"start_date": "2027-05-02", "end_date": "2027-05-01"}
LINKS = {"venue": 99, "organizer": [98], "categories": [97], "tags": [96], "post_parent": 95}
CREATIONS: list[tuple[str, dict[str, Any], set[str]]] = [
    ("events", LINKS, set(LINKS)),
    ("events", TIMES, {"end_date"}),
    ("events", TIMES | LINKS, {"end_date", *LINKS}),
    ("events", TIMES | {"website": "nope"}, {"end_date", "website"}),
    ("events", TIMES | LINKS | {"website": "nope"}, {"end_date", "website", *LINKS}),
    ("events", LINKS | {"start_date": "nope"}, {"start_date", *LINKS}),
    ("events", LINKS | {"title": " ", "timezone": "Mars/Base"}, {"title", "timezone", *LINKS}),
    ("events", {"venue": {"venue": ""}, "tags": [96], "date": "nope"}, {"venue", "tags", "date"}),
    ("venues", {"venue": "x", "website": "x", "geo_lat": 1, "date": "x"}, {"website", "geo_lng", "date"}),
    ("categories", {"name": " ", "parent": 99}, {"name", "parent"}),
    ("categories", {"name": "x", "parent": 99, "slug": 5}, {"slug", "parent"}),
]  # fmt: skip


@pytest.mark.parametrize(("plural", "body", "named"), CREATIONS)
async def test_every_bad_field_of_a_new_record_is_named(
    api: Api, plural: str, body: dict[str, Any], named: set[str]
) -> None:
    right = {"title": "x", "start_date": "2027-05-01", "end_date": "2027-05-02"} if plural == "events" else {}
    status, problem = await api.post(f"/{plural}", right | body)
    assert (status, problem["code"]) == (400, "rest_invalid_param")
    assert set(problem["data"]["params"]) == named
    assert all(problem["data"]["params"].values())
    for kind in KINDS:
        assert await api.store.database[kind.plural].count_documents({}) == 0


@pytest.mark.parametrize(("plural", "body", "named"), CREATIONS)
async def test_every_bad_field_of_an_update_is_named(
    api: Api, plural: str, body: dict[str, Any], named: set[str]
) -> None:
    kind = next(kind for kind in KINDS if kind.plural == plural)
    made = await api.made(plural, **{k: v for k, v in kind.example.items() if k not in kind.links})
    for path in (f"/{plural}/{made['id']}", f"/{plural}/by-slug/{made['slug']}"):
        if kind.is_post or "by-slug" not in path:
            status, problem = await api.patch(path, body)
            assert (status, set(problem["data"]["params"])) == (400, named)
    _, now = await api.get(f"/{plural}/{made['id']}")
    now.pop("json_ld", None)
    assert now == made


async def test_an_end_is_compared_with_the_stored_start_beside_other_problems(api: Api) -> None:
    event = await api.event(start_date="2027-05-10", end_date="2027-05-11")
    path = f"/events/{event['id']}"
    status, problem = await api.patch(path, {"end_date": "2027-05-01", "website": "nope", "tags": [99]})
    assert (status, set(problem["data"]["params"])) == (400, {"end_date", "website", "tags"})


async def test_problems_tell_nothing_of_events_that_are_not_the_callers(roles: dict[str, Api]) -> None:
    hidden = await roles["editor"].event(status="draft", start_date="2027-05-10", end_date="2027-05-11")
    locked = await roles["author"].event(password="s3cret", start_date="2027-05-10", end_date="2027-05-11")
    for id in (hidden["id"], locked["id"]):
        for end in ("2027-05-01", "2027-05-20"):
            status, problem = await roles["author"].patch(
                f"/events/{id}", {"end_date": end, "website": "nope"}
            )
            assert (status, set(problem["data"]["params"])) == (400, {"website"})


FILTERS = [
    ("events", {"categories": "x", "tags": "y", "venue": "9", "organizer": "9", "post_parent": "9"}),
    ("events", {"categories": "x", "page": "0", "orderby": "x", "start_date": "nope", "fields": "x"}),
    ("events", {"tags": "x", "geoloc_lat": "95", "geoloc_lng": "1", "per_page": "0"}),
    ("venues", {"event": "9", "per_page": "0", "has_events": "x", "fields": "x"}),
    ("categories", {"include": "9", "exclude": "8", "event": "7", "parent": "6", "page": "0"}),
    ("tags", {"include": "9", "post": "7", "orderby": "x"}),
]


@pytest.mark.parametrize(("plural", "query"), FILTERS)
async def test_every_bad_filter_is_named(api: Api, plural: str, query: dict[str, str]) -> None:
    status, problem = await api.get(f"/{plural}", **query)
    assert (status, set(problem["data"]["params"])) == (400, set(query) - {"geoloc_lng"})


async def test_a_status_that_is_not_for_the_public_is_named_beside_others(roles: dict[str, Api]) -> None:
    for plural, more in (("events", "tags"), ("venues", "event")):
        status, problem = await roles["public"].get(f"/{plural}", **{"status": "draft", more: "9"})
        assert (status, set(problem["data"]["params"])) == (400, {"status", more})


# Warnings

UNKNOWN = ["unknown field: catgories", "unknown field: venue.ctiy"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_unknown_fields_are_warned_of(api: Api, kind: Kind) -> None:
    status, made = await api.post(f"/{kind.plural}", dict(kind.example) | {"nmae": 1})
    assert (status, made["warnings"]) == (201, ["unknown field: nmae"])
    path = f"/{kind.plural}/{made['id']}"
    assert (await api.send("PUT", path, {"descripton": "x"}))[1]["warnings"] == ["unknown field: descripton"]
    assert "warnings" not in (await api.get(path))[1]
    assert "warnings" not in (await api.patch(path, {"description": "x"}))[1]
    assert "warnings" not in (await api.patch(path, made))[1]


async def test_unknown_fields_of_new_links_are_warned_of(api: Api) -> None:
    body = {"title": "x", "start_date": "2027-05-01", "end_date": "2027-05-01", "catgories": ["x"]}
    _, made = await api.post("/events", body | {"venue": {"venue": "Hall", "ctiy": "Oslo"}})
    assert made["warnings"] == UNKNOWN
    _, made = await api.post(
        "/events", body | {"organizer": [{"organizer": "Ann"}, {"organizer": "B", "x": 1}]}
    )
    assert made["warnings"] == ["unknown field: catgories", "unknown field: organizer.x"]
    assert "unbekanntes Feld: catgories" in (await api.post("/events?lang=de", body))[1]["warnings"]


async def test_unknown_fields_of_a_form_are_warned_of(api: Api) -> None:
    form = {"venue": "Hall", "ctiy": "Oslo"}
    assert (await api.send("POST", "/venues", data=form))[1]["warnings"] == ["unknown field: ctiy"]


@pytest.mark.parametrize(
    ("status", "meant"),
    [
        ("published", "publish"),
        ("Publish", "publish"),
        ("drafts", "draft"),
        ("cancelled", None),
        ("draft", None),
    ],
)
async def test_a_misspelt_status_is_warned_of(api: Api, status: str, meant: str | None) -> None:
    made = await api.made("venues", venue="Hall", status=status)
    assert made["status"] == status
    told = f"unusual status: {status}; did you mean {meant}?"
    assert made.get("warnings") == ([told] if meant else None)
    assert await api.ids("venues", status=status) == [made["id"]]
    assert await api.ids("venues", status="any") == []


@pytest.mark.parametrize("plural", ["categories", "tags"])
async def test_a_comma_parts_only_a_plain_string(api: Api, plural: str) -> None:
    async def names(**body: Any) -> list[str]:
        return [term["name"] for term in (await api.event(**body))[plural]]

    assert await names(**{plural: ["Food, Drink & Wine"]}) == ["Food, Drink & Wine"]
    assert await names(**{plural: "Food, Wine"}) == ["Food", "Wine"]
    times = {"title": "x", "start_date": "2027-05-01", "end_date": "2027-05-01"}
    form = [*times.items(), (f"{plural}[]", "Bread, Butter"), (f"{plural}[]", "Wine")]
    _, made = await api.send("POST", "/events", data=form)
    assert [term["name"] for term in made[plural]] == ["Bread, Butter", "Wine"]
    for query in ({f"{plural}[]": "Bread, Butter"}, {plural: "Food,bread-butter"}):
        assert made["id"] in await api.ids("events", **query)
