"""The lists of venues, organizers, categories and tags: every filter, and what each caller may learn."""

from __future__ import annotations

from datetime import datetime
from itertools import permutations
from typing import Any

import pytest

from schemas import KINDS, Kind
from tests.conftest import Api
from tests.samples import named

PAST = {"start_date": "2020-01-01 10:00", "end_date": "2020-01-01 12:00"}
linked_kinds = pytest.mark.parametrize(
    ("plural", "field"), [("venues", "venue"), ("organizers", "organizer")]
)


async def names(api: Api, plural: str, field: str = "name", **query: Any) -> list[str]:
    status, page = await api.get(f"/{plural}", **query)
    assert status == 200, page
    assert page["total"] == len(page[plural])
    return [record[field] for record in page[plural]]


@linked_kinds
async def test_newest_come_first_unless_asked_otherwise(api: Api, plural: str, field: str) -> None:
    for number, name in enumerate(["beta", "Alpha", "gamma"]):
        await api.made(plural, **{field: name, "date": f"2026-01-0{number + 1} 00:00:00"})
    assert await names(api, plural, field) == ["gamma", "Alpha", "beta"]
    assert await names(api, plural, field, order="asc") == ["beta", "Alpha", "gamma"]
    assert await names(api, plural, field, orderby="title") == ["Alpha", "beta", "gamma"]
    assert await names(api, plural, field, orderby="id", order="desc") == ["gamma", "Alpha", "beta"]


ORDERED = [
    ({}, ["Zoë", "gamma", "Alpha", "beta"]),
    ({"orderby": "date"}, ["Zoë", "gamma", "Alpha", "beta"]),
    ({"order": "asc"}, ["beta", "Alpha", "gamma", "Zoë"]),
    ({"orderby": "date", "order": "ASC"}, ["beta", "Alpha", "gamma", "Zoë"]),
    ({"orderby": "modified"}, ["Alpha", "Zoë", "gamma", "beta"]),
    ({"orderby": "modified", "order": "asc"}, ["beta", "gamma", "Zoë", "Alpha"]),
    ({"orderby": "title"}, ["Alpha", "beta", "gamma", "Zoë"]),
    ({"orderby": "title", "order": "desc"}, ["Zoë", "gamma", "beta", "Alpha"]),
    ({"orderby": "id"}, ["beta", "Alpha", "gamma", "Zoë"]),
    ({"orderby": "id", "order": "desc"}, ["Zoë", "gamma", "Alpha", "beta"]),
    ({"orderby": "", "order": ""}, ["Zoë", "gamma", "Alpha", "beta"]),
]


@linked_kinds
async def test_every_order_of_venues_and_organizers(api: Api, plural: str, field: str) -> None:
    """Two have the same date; those are in the order of their ids, or in the reverse."""
    made = {}
    for name, day in (("beta", 1), ("Alpha", 2), ("gamma", 2), ("Zoë", 3)):
        made[name] = await api.made(plural, **{field: name, "date": f"2026-01-0{day} 00:00:00"})
    modified = {"beta": 1, "Alpha": 3, "gamma": 2, "Zoë": 2}
    for name, record in made.items():
        await api.store.database[plural].update_one(
            {"_id": record["id"]}, {"$set": {"modified_utc": datetime(2026, 2, modified[name])}}
        )
    for query, expected in ORDERED:
        assert await names(api, plural, field, **query) == expected, query
        pages = [await api.ids(plural, per_page="1", page=str(page), **query) for page in range(1, 5)]
        assert pages == [[made[name]["id"]] for name in expected], query


@linked_kinds
@pytest.mark.parametrize(
    "query", [{"orderby": "name"}, {"orderby": "city"}, {"order": "up"}, {"orderby": "x", "order": "y"}]
)
async def test_an_unknown_order_is_refused(api: Api, plural: str, field: str, query: dict[str, str]) -> None:
    status, problem = await api.get(f"/{plural}", **query)
    assert (status, problem["code"]) == (400, "rest_invalid_param")
    assert problem["data"]["params"].keys() == query.keys()


@pytest.mark.parametrize(
    ("plural", "body", "words"),
    [
        (
            "venues",
            {
                "venue": "Qname",
                "address": "Qstreet",
                "city": "Qcity",
                "country": "Qland",
                "zip": "Q9",
                "phone": "+47",
                "state": "Qstate",
                "province": "Qprov",
                "website": "https://qweb.example.com",
                "description": "<b>Qtext</b>",
            },
            [
                "qname",
                "QSTREET",
                "city",
                "land",
                "q9",
                "+47",
                "qstate",
                "prov",
                "web.ex",
                "Qtext",
                "qname q9",
            ],
        ),
        (
            "organizers",
            {
                "organizer": "Rname",
                "phone": "555-1",
                "email": "r@mail.example.com",
                "website": "https://rweb.example.com",
            },
            ["rnam", "555-", "r@mail", "rweb", "rname 555"],
        ),
    ],
)
async def test_search_looks_through_all_text_fields(
    api: Api, plural: str, body: Any, words: list[str]
) -> None:
    record = await api.made(plural, **body)
    await api.made(plural, **{plural[:-1]: "Other"})
    for word in words:
        assert await api.ids(plural, search=word) == [record["id"]], word
    for word in ("nothing", "<b>", "qname nothing"):
        assert await api.ids(plural, search=word) == [], word


@linked_kinds
async def test_what_events_have_and_will_have(api: Api, plural: str, field: str) -> None:
    records = {
        name: (await api.made(plural, **{field: name}))["id"] for name in ("none", "past", "next", "draft")
    }
    await api.event("Past", **PAST, **{field: records["past"]})
    coming = await api.event("Next", **{field: records["next"]})
    await api.event("Draft", status="draft", **{field: records["draft"]})
    roles = {"has_events": "true", "orderby": "id"}
    assert await names(api, plural, field, **roles) == ["past", "next", "draft"]
    assert await names(api, plural, field, **roles | {"has_events": "0"}) == ["none"]
    assert await names(api, plural, field, only_with_upcoming="1", orderby="id") == ["next", "draft"]
    assert await names(api, plural, field, event=str(coming["id"])) == ["next"]
    await api.patch(f"/events/{coming['id']}", PAST)
    assert await names(api, plural, field, only_with_upcoming="1") == ["draft"]
    await api.delete(f"/events/{coming['id']}")
    assert await names(api, plural, field, **roles) == ["past", "draft"]
    status, problem = await api.get(f"/{plural}", event="4711")
    assert (status, list(problem["data"]["params"])) == (400, ["event"])


@linked_kinds
async def test_only_events_that_the_caller_sees_count(roles: dict[str, Api], plural: str, field: str) -> None:
    editor, public, author = roles["editor"], roles["public"], roles["author"]
    record = await editor.made(plural, **{field: "Hall"})
    assert (await author.event(status="draft", **{field: record["id"]}))["author"] != record["author"]
    for caller, found in ((public, []), (roles["contributor"], []), (author, ["Hall"]), (editor, ["Hall"])):
        assert await names(caller, plural, field, has_events="1") == found
        assert await names(caller, plural, field, only_with_upcoming="1") == found
        assert await names(caller, plural, field, has_events="0") == ([] if found else ["Hall"])


async def test_statuses_are_for_those_who_see_them(roles: dict[str, Api]) -> None:
    for who in ("author", "editor"):
        for status in ("draft", "publish", "private"):
            await roles[who].made("venues", venue=f"{who} {status}", status=status)
    query = {"orderby": "id"}
    public = ["author publish", "editor publish"]
    assert await names(roles["public"], "venues", "venue", **query) == public
    assert len(await names(roles["editor"], "venues", "venue", **query)) == 6
    assert await names(roles["viewer"], "venues", "venue", status="draft,private", **query) == [
        "author draft", "author private", "editor draft", "editor private",
    ]  # fmt: skip
    own = ["author draft", "author publish", "author private", "editor publish"]
    assert await names(roles["author"], "venues", "venue", **query) == own
    assert await names(roles["author"], "venues", "venue", status="draft", **query) == ["author draft"]
    status, problem = await roles["public"].get("/venues", status="publish,draft")
    assert (status, list(problem["data"]["params"])) == (400, ["status"])


async def test_empty_terms_are_hidden_unless_something_below_is_not(api: Api) -> None:
    top = await api.made("categories", name="Top")
    middle = await api.made("categories", name="Middle", parent=top["id"])
    leaf = await api.made("categories", name="Leaf", parent=middle["id"])
    await api.made("categories", name="Unused")
    event = await api.event(categories=[leaf["id"]])
    assert await names(api, "categories") == ["Leaf", "Middle", "Top"]
    assert await names(api, "categories", hide_empty="0") == ["Leaf", "Middle", "Top", "Unused"]
    assert await names(api, "categories", parent=str(top["id"])) == ["Middle"]
    assert await names(api, "categories", parent="0", hide_empty="no") == ["Top", "Unused"]
    for name in ("event", "post"):
        assert await names(api, "categories", **{name: str(event["id"])}) == ["Leaf"]
    await api.patch(f"/events/{event['id']}", {"status": "draft"})
    assert await names(api, "categories") == []
    assert await names(api, "categories", event=str(event["id"])) == ["Leaf"]


async def test_terms_in_every_order(api: Api) -> None:
    made = {}
    for name, slug, uses in (("beta", "z", 1), ("Alpha", "y", 3), ("gamma", "x", 2)):
        made[name] = (await api.made("tags", name=name, slug=slug, description=f"{4 - uses}"))["id"]
        for _ in range(uses):
            await api.event(tags=[made[name]])
    assert await names(api, "tags") == ["Alpha", "beta", "gamma"]
    assert await names(api, "tags", order="DESC") == ["gamma", "beta", "Alpha"]
    assert await names(api, "tags", orderby="slug") == ["gamma", "Alpha", "beta"]
    assert await names(api, "tags", orderby="id") == ["beta", "Alpha", "gamma"]
    assert await names(api, "tags", orderby="count", order="desc") == ["Alpha", "gamma", "beta"]
    assert await names(api, "tags", orderby="description") == ["Alpha", "gamma", "beta"]
    chosen = f"{made['gamma']},{made['beta']}"
    assert await names(api, "tags", include=chosen) == ["beta", "gamma"]
    assert await names(api, "tags", include=chosen, orderby="include") == ["gamma", "beta"]
    assert await names(api, "tags", exclude=chosen) == ["Alpha"]
    assert await names(api, "tags", slug="y") == ["Alpha"]
    assert await names(api, "tags", search="amm") == ["gamma"]
    assert await names(api, "tags", search="nothing") == []
    for name in ("include", "exclude"):
        status, problem = await api.get("/tags", **{name: "4711"})
        assert (status, list(problem["data"]["params"])) == (400, [name])


@pytest.mark.parametrize("plural", ["categories", "tags"])
async def test_terms_of_an_event_are_in_the_order_of_their_list(api: Api, plural: str) -> None:
    long = "x" * 100
    sent = [
        "Zoo",
        "Ärger",
        "zebra",
        "Apple",
        f"{long} b",
        f"{long} a",
        "éclair",
        "Eclipse",
        "Straße",
        "strasse 2",
    ]
    event = await api.event(**{plural: sent})
    listed = await names(api, plural)
    assert listed == [
        "Apple", "Ärger", "éclair", "Eclipse", "Straße", "strasse 2",
        f"{long} b", f"{long} a", "zebra", "Zoo",
    ]  # fmt: skip
    assert [term["name"] for term in event[plural]] == listed


async def test_one_name_is_one_term_under_one_parent(api: Api) -> None:
    jazz = await api.made("categories", name="Jazz")
    for name in ("Jazz", "JAZZ", " jazz "):
        status, problem = await api.post("/categories", {"name": name})
        assert (status, problem["code"], problem["data"]["term_id"]) == (400, "term_exists", jazz["id"])
    below = await api.made("categories", name="Jazz", parent=jazz["id"])
    other = await api.made("categories", name="Jazz", slug="jazz-too")
    assert (below["slug"], below["parent"], below["urls"]["up"]) == (
        "jazz-2",
        jazz["id"],
        jazz["urls"]["self"],
    )
    status, problem = await api.patch(f"/categories/{other['id']}", {"slug": "jazz"})
    assert (status, problem["code"]) == (409, "duplicate_term_slug")
    for parent in (jazz["id"], below["id"]):
        status, problem = await api.patch(f"/categories/{jazz['id']}", {"parent": parent})
        assert (status, list(problem["data"]["params"])) == (400, ["parent"])


@pytest.mark.parametrize("kind", KINDS, ids=named)
async def test_lists_of_what_was_changed_after_a_time(api: Api, kind: Kind) -> None:
    ids = []
    for number in range(3):
        name = {kind.name_field: f"Name {number}"}
        ids.append((await api.made(kind.plural, **dict(kind.example) | name))["id"])
        time = {"$set": {"modified_utc": datetime(2026, 1, 1, 12, 0, number)}}
        await api.store.database[kind.plural].update_one({"_id": ids[-1]}, time)
    rest = {} if kind.is_post else {"hide_empty": "0"}
    for after, expected in (
        ("2026-01-01 12:00:00", ids[1:]),
        ("2026-01-01T13:00:01+01:00", ids[2:]),
        ("2026-01-01", ids),
        ("2026-01-02", []),
    ):
        assert sorted(await api.ids(kind.plural, modified_after=after, **rest)) == expected, after
    status, problem = await api.get(f"/{kind.plural}", modified_after="soon")
    assert (status, list(problem["data"]["params"])) == (400, ["modified_after"])
    await api.patch(f"/{kind.plural}/{ids[0]}", {"description": "Changed"})
    assert await api.ids(kind.plural, modified_after="2026-01-02", **rest) == ids[:1]


async def test_categories_change_when_the_one_above_them_is_removed(api: Api) -> None:
    top = (await api.made("categories", name="Top"))["id"]
    below = (await api.made("categories", name="Below", parent=top))["id"]
    await api.store.database["categories"].update_many({}, {"$set": {"modified_utc": datetime(2026, 1, 1)}})
    assert (await api.delete(f"/categories/{top}"))[0] == 200
    assert await api.ids("categories", modified_after="2026-01-02", hide_empty="0") == [below]


async def test_filters_by_the_same_records_share_a_cache_entry(api: Api) -> None:
    venues = [(await api.made("venues", venue=f"Hall {n}", description="x" * 1000))["id"] for n in range(3)]
    for order in permutations(venues):
        assert (await api.get("/events", venue=",".join(map(str, order))))[0] == 200
    ((_, found),) = api.store.resolver._cache.values()
    assert [(id, sorted(seen)) for id, seen in found] == [(id, ["author", "status"]) for id in sorted(venues)]
