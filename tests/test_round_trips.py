"""What a client reads it can send back: nothing changes, and nothing is said against it."""

from __future__ import annotations

from typing import Any

import pytest

from schemas import KINDS, Kind
from tests.conftest import Api
from tests.random_records import Bodies

ITEM = {"hide_empty": "0", "starts_after": "2001-01-01", "per_page": "100"}


async def stored(api: Api, kind: Kind, id: int) -> Any:
    return await api.store.database[kind.plural].find_one({"_id": id})


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_a_record_sent_back_as_answered_stays_as_it_is(api: Api, kind: Kind, seed: int) -> None:
    bodies = Bodies(seed)
    for _ in range(12):
        made = await api.made(kind.plural, **bodies.body(kind.name))
        path, before = f"/{kind.plural}/{made['id']}", await stored(api, kind, made["id"])
        _, read = await api.get(path)
        tag = api.headers["ETag"]
        paths = [path, f"/{kind.plural}/by-slug/{made['slug']}"] if kind.is_post else [path]
        for method, body in (("PUT", read), ("POST", made), ("PATCH", read)):
            for where in paths:
                status, answer = await api.send(method, where, body, headers={"If-Match": tag})
                assert (status, answer) == (200, made), method
        assert await stored(api, kind, made["id"]) == before
        assert (await api.get(path))[1] == read
        assert api.headers["ETag"] == tag


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_a_record_of_a_list_sent_back_stays_as_it_is(api: Api, kind: Kind) -> None:
    bodies = Bodies(99)
    for _ in range(8):
        await api.made(kind.plural, **bodies.body(kind.name))
    _, page = await api.get(f"/{kind.plural}", **ITEM)
    for listed in page[kind.plural]:
        before = await stored(api, kind, listed["id"])
        status, answer = await api.send("PUT", f"/{kind.plural}/{listed['id']}", listed)
        assert (status, answer) == (200, listed)
        assert await stored(api, kind, listed["id"]) == before
    assert page[kind.plural]


async def test_one_change_in_what_was_read_changes_just_that(api: Api) -> None:
    bodies = Bodies(7)
    for _ in range(10):
        made = await api.made("events", **bodies.body("event"))
        changed = made | {"title": "Another title"}
        status, answer = await api.send("PUT", f"/events/{made['id']}", changed)
        assert status == 200
        assert answer | {"modified": "", "modified_utc": ""} == changed | {"modified": "", "modified_utc": ""}


@pytest.mark.parametrize("status", ["trash", "draft"])
async def test_links_that_are_not_shown_are_not_lost(roles: dict[str, Api], status: str) -> None:
    """A venue that is not shown to a client stays linked when the client sends back what it has read."""
    editor, author = roles["editor"], roles["author"]
    venue = await editor.made("venues", venue="Hall")
    event = await author.event("Event", venue=venue["id"], organizer=[{"organizer": "Ann"}])
    await editor.patch(f"/venues/{venue['id']}", {"status": status})
    _, read = await author.get(f"/events/{event['id']}")
    assert read["venue"] == []
    assert (await author.send("PUT", f"/events/{event['id']}", read))[0] == 200
    await editor.patch(f"/venues/{venue['id']}", {"status": "publish"})
    assert (await author.get(f"/events/{event['id']}"))[1]["venue"]["id"] == venue["id"]


async def test_other_links_replace_those_that_are_not_shown(roles: dict[str, Api]) -> None:
    editor = roles["editor"]
    old, new = [await editor.made("venues", venue=name) for name in ("Old", "New")]
    event = await editor.event("Event", venue=old["id"])
    await editor.delete(f"/venues/{old['id']}")
    assert (await editor.patch(f"/events/{event['id']}", {"venue": new["id"]}))[1]["venue"]["id"] == new["id"]
    await editor.patch(f"/venues/{old['id']}", {"status": "publish"})
    assert (await editor.get(f"/events/{event['id']}"))[1]["venue"]["id"] == new["id"]


async def test_a_province_sent_back_still_follows_the_state(api: Api) -> None:
    venue = await api.made("venues", venue="Hall", state="Bayern")
    assert venue["stateprovince"] == "Bayern"
    path = f"/venues/{venue['id']}"
    await api.send("PUT", path, venue)
    assert (await api.patch(path, {"state": "Hessen"}))[1]["stateprovince"] == "Hessen"
    await api.patch(path, {"stateprovince": "Land Hessen"})
    assert (await api.patch(path, {"state": "Berlin"}))[1]["stateprovince"] == "Land Hessen"


@pytest.mark.parametrize("cleared", [False, 0, None, "", "0", "false"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.is_post], ids=lambda kind: kind.name)
async def test_an_image_is_cleared_by_what_stands_for_none(api: Api, kind: Kind, cleared: object) -> None:
    body = dict(kind.example) | {"image": "https://example.org/a.png"}
    made = await api.made(kind.plural, **body)
    url = "https://example.org/a.png"
    size = {"width": None, "height": None, "mime-type": None, "filesize": None, "url": url}
    assert made["image"] == {
        "url": url,
        "id": None,
        "extension": None,
        "width": None,
        "height": None,
        "filesize": None,
        "sizes": dict.fromkeys(("thumbnail", "medium", "medium_large", "large", "full"), size),
    }
    path = f"/{kind.plural}/{made['id']}"
    assert (await api.patch(path, {"image": made["image"]}))[1]["image"] == made["image"]
    assert (await api.patch(path, {"image": cleared}))[1]["image"] is False
    assert (await api.patch(path, {"image": 12}))[1]["image"]["id"] == 12


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.is_post], ids=lambda kind: kind.name)
async def test_either_date_of_what_was_read_can_be_changed(api: Api, kind: Kind) -> None:
    for name in ("date", "date_utc"):
        made = await api.made(kind.plural, **kind.example, date="2027-01-01 10:00:00")
        changed = made | {name: "2027-02-03 04:05:06"}
        status, answer = await api.send("PUT", f"/{kind.plural}/{made['id']}", changed)
        assert (status, answer["date"], answer["date_utc"]) == (200, *["2027-02-03 04:05:06"] * 2)


async def test_other_values_of_a_cost_that_reads_the_same_are_stored(api: Api) -> None:
    event = await api.event("Fair", cost=[10, 20, 30])
    _, same = await api.patch(f"/events/{event['id']}", {"cost": event["cost"]})
    assert same["cost_details"]["values"] == ["10", "20", "30"]
    _, other = await api.patch(f"/events/{event['id']}", {"cost": [10, 30]})
    assert (other["cost"], other["cost_details"]["values"]) == (event["cost"], ["10", "30"])
