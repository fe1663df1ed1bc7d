"""`fields=`: only the keys that are asked for, in every GET of records."""

from __future__ import annotations

from typing import Any

import pytest

from schemas import KINDS, Kind
from tests.conftest import Api

BODY = {"venue": {"venue": "Hall", "city": "Oslo"}, "organizer": [{"organizer": "Ann"}, {"organizer": "Bob"}]}
SELECTIONS: list[tuple[str, Any, str]] = [
    ("id", {"id": 1}, "one key"),
    ("title,id", {"id": 1, "title": "Event"}, "several"),
    ("venue.city", {"venue": {"city": "Oslo"}}, "a key of the venue"),
    ("venue.city,venue.venue", {"venue": {"venue": "Hall", "city": "Oslo"}}, "two keys of the venue"),
    ("organizer.organizer", {"organizer": [{"organizer": "Ann"}, {"organizer": "Bob"}]}, "of every item"),
    ("image", {"image": False}, "what is false"),
    ("image.sizes.medium.url", {"image": False}, "a key of what is not there"),
    ("start_date_details.year", {"start_date_details": {"year": "2027"}}, "parts of a date"),
    ("cost_details.values", {"cost_details": {"values": []}}, "an empty list"),
]


@pytest.mark.parametrize(("fields", "shown", "why"), SELECTIONS)
async def test_only_these_keys_are_shown(api: Api, fields: str, shown: Any, why: str) -> None:
    event = await api.event(**BODY)
    shown = shown | ({"id": event["id"]} if "id" in shown else {})
    assert (await api.get(f"/events/{event['id']}", fields=fields))[1] == shown, why
    assert (await api.get(f"/events/by-slug/{event['slug']}", fields=fields))[1] == shown, why
    assert (await api.get("/events", fields=fields))[1]["events"] == [shown], why


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_every_key_can_be_selected(api: Api, kind: Kind) -> None:
    made = await api.made(kind.plural, **kind.example)
    path = f"/{kind.plural}/{made['id']}"
    _, whole = await api.get(path)
    for name in kind.response_schema().fields:
        picked = {name: whole[name]} if name in whole else {}
        assert (await api.get(path, fields=name)) == (200, picked)
    dates = {"hide_empty": "0"} if not kind.is_post else {}
    _, page = await api.get(f"/{kind.plural}", fields="id,slug", **dates)
    assert page[kind.plural] == [{"id": made["id"], "slug": made["slug"]}]
    assert page["total"] == 1


async def test_a_whole_object_wins_over_one_of_its_keys(api: Api) -> None:
    event = await api.event(**BODY)
    for fields in ("venue,venue.city", "venue.city,venue"):
        assert (await api.get(f"/events/{event['id']}", fields=fields))[1] == {"venue": event["venue"]}


async def test_several_venues_and_none(api: Api) -> None:
    several = await api.event("Several", venue=[{"venue": "Hall"}, {"venue": "Yard"}])
    none = await api.event("None")
    _, page = await api.get("/events", fields="id,venue.venue")
    assert page["events"] == [
        {"id": several["id"], "venue": [{"venue": "Hall"}, {"venue": "Yard"}]},
        {"id": none["id"], "venue": []},
    ]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ("titel", "titel"),
        ("id,titel,venu.city", "titel, venu.city"),
        ("venue.town", "venue.town"),
        ("id.x", "id.x"),
    ],
)
async def test_an_unknown_key_is_named(api: Api, fields: str, named: str) -> None:
    event = await api.event(**BODY)
    for path in (f"/events/{event['id']}", f"/events/by-slug/{event['slug']}", "/events"):
        status, problem = await api.get(path, fields=fields)
        assert (status, problem["code"]) == (400, "rest_invalid_param")
        assert problem["data"]["params"] == {"fields": f"Unknown field: {named}."}


async def test_a_selection_has_an_entity_tag_of_its_own(api: Api) -> None:
    event = await api.event(**BODY)
    path = f"/events/{event['id']}"
    tags = []
    for query in ({}, {"fields": "id"}, {"fields": "id,title"}):
        await api.get(path, **query)
        tags.append(api.headers["ETag"])
        assert (await api.send("GET", path, params=query, headers={"If-None-Match": tags[-1]}))[0] == 304
    assert len(set(tags)) == 3
    assert (await api.patch(path, {"title": "New"}, headers={"If-Match": tags[1]}))[0] == 200
    assert (await api.get(path, fields="title"))[1] == {"title": "New"}


async def test_links_keep_the_selection(api: Api) -> None:
    for number in range(3):
        await api.event(f"Event {number}")
    _, page = await api.get("/events", fields="title", per_page="1")
    assert "fields=title" in page["next_rest_url"]


async def test_what_a_password_hides_stays_hidden(api: Api) -> None:
    event = await api.event("Secret", password="s3cret", description="zebra")
    assert (await api.get(f"/events/{event['id']}", fields="description"))[0] == 403
    assert (await api.get("/events", fields="description"))[1]["events"] == [{"description": ""}]
    query = {"fields": "description", "password": "s3cret"}
    assert (await api.get(f"/events/{event['id']}", **query))[1] == {"description": "zebra"}
