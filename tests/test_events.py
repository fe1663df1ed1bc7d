"""What only events have: times, links, costs, passwords, and the filters of their list."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from service.store.lists import resolver
from tests.checker import agrees
from tests.conftest import Api, MakeApi

DAY = {"start_date": "2027-06-01 10:00:00", "end_date": "2027-06-01 12:00:00"}


@pytest.mark.parametrize(
    ("sent", "start", "utc", "why"),
    [
        ({}, "2027-06-01 10:00:00", "2027-06-01 10:00:00", "the site's zone is the default"),
        (
            {"timezone": "america/new_york"},
            "2027-06-01 10:00:00",
            "2027-06-01 14:00:00",
            "wall clock in the zone",
        ),
        ({"timezone": "UTC-5:30"}, "2027-06-01 10:00:00", "2027-06-01 15:30:00", "fixed offset"),
        (
            {"start_date": "2027-06-01T10:00:00+05:00", "timezone": "Europe/Paris"},
            "2027-06-01 07:00:00",
            "2027-06-01 05:00:00",
            "an instant is converted into the zone",
        ),
        ({"all_day": True}, "2027-06-01 00:00:00", "2027-06-01 00:00:00", "all day from midnight"),
        (
            {
                "start_date": "2027-03-14 02:30",
                "end_date": "2027-03-14 05:00",
                "timezone": "America/New_York",
            },
            "2027-03-14 03:30:00",
            "2027-03-14 07:30:00",
            "a gap moves forward",
        ),
    ],
)
async def test_times(api: Api, sent: dict[str, Any], start: str, utc: str, why: str) -> None:
    event = await api.event(**sent)
    assert (event["start_date"], event["utc_start_date"]) == (start, utc), why


async def test_one_end_alone_is_checked_against_the_stored_other(api: Api) -> None:
    event = await api.event()
    path = f"/events/{event['id']}"
    status, problem = await api.patch(path, {"end_date": "2027-06-01 09:00:00"})
    assert (status, list(problem["data"]["params"])) == (400, ["end_date"])
    status, moved = await api.patch(path, {"start_date": "2027-06-01 09:00:00"})
    assert (status, moved["start_date"], moved["end_date"]) == (200, "2027-06-01 09:00:00", DAY["end_date"])
    status, zoned = await api.patch(path, {"timezone": "Asia/Tokyo"})
    assert (zoned["start_date"], zoned["utc_start_date"]) == ("2027-06-01 09:00:00", "2027-06-01 00:00:00")


async def test_publication_waits_for_its_date(api: Api) -> None:
    event = await api.event(date="2027-01-01 00:00:00")
    assert event["status"] == "future"
    now = await api.event(status="future")
    assert now["status"] == "publish"
    await api.store.database["events"].update_one(
        {"_id": event["id"]}, {"$set": {"date_utc": api.store.site.now()}}
    )
    await api.store.maintain()
    assert (await api.get(f"/events/{event['id']}"))[1]["status"] == "publish"


@pytest.mark.parametrize(
    ("spelling", "shown"),
    [
        ("[{a}, {b}]", ["a", "b"]),
        ('"{a},{b}"', ["a", "b"]),
        ("{a}", ["a"]),
        ('["{b} ", "{a}", {b}]', ["b", "a"]),
        ('{{"id": {a}}}', ["a"]),
        ("[]", []),
        ("null", []),
        ('""', []),
        ("0", []),
    ],
)
async def test_links_in_every_spelling(api: Api, spelling: str, shown: list[str]) -> None:
    ids = {name: (await api.made("organizers", organizer=name))["id"] for name in ("a", "b")}
    sent = json.loads(spelling.format(**ids))
    event = await api.event(organizer=sent)
    assert [one["organizer"] for one in event["organizer"]] == shown


async def test_venue_is_an_object_alone_and_an_array_otherwise(api: Api) -> None:
    assert (await api.event())["venue"] == []
    one = await api.event(venue={"venue": "Hall", "city": "Oslo"})
    assert (one["venue"]["venue"], one["venue"]["city"]) == ("Hall", "Oslo")
    two = await api.event(venue=[one["venue"]["id"], {"venue": "Annex"}])
    assert [venue["venue"] for venue in two["venue"]] == ["Hall", "Annex"]


async def test_inline_data_of_a_published_record_links_it(api: Api) -> None:
    hall = await api.made("venues", venue="Hall", city="Oslo", zip="0150")
    same = await api.event(venue={"venue": "Hall", "city": "Oslo"})
    other = await api.event(venue={"venue": "Hall", "city": "Bergen"})
    assert same["venue"]["id"] == hall["id"] != other["venue"]["id"]


EMPTY = [
    *[("venue", {name: empty}, True) for name in ("address", "zip", "website") for empty in ("", None)],
    *[("organizer", {name: empty}, True) for name in ("phone", "email") for empty in ("", None)],
    ("venue", {"image": False, "description": ""}, True),
    ("venue", {"geo_lat": None, "geo_lng": None}, True),
    ("venue", {"city": "", "province": None, "show_map": None}, False),
    ("venue", {"status": "", "author": None, "date": "", "date_utc": None, "slug": ""}, False),
]
FULL = {
    "venue": {
        "address": "Main Street",
        "zip": "1",
        "image": 5,
        "description": "x",
        "geo_lat": 1,
        "geo_lng": 2,
    },
    "organizer": {"phone": "1", "email": "a@example.org"},
}


@pytest.mark.parametrize(("field", "empty", "differs"), EMPTY)
async def test_a_field_that_is_given_as_empty_is_compared(
    api: Api, field: str, empty: dict[str, Any], differs: bool
) -> None:
    """Fields that nobody can empty are not, nor those that are empty in the stored record, too."""
    site = {"website": "https://example.org"}
    full = await api.made(f"{field}s", **{field: "Hall"}, **FULL[field], **site)
    linked = (await api.event(**{field: [{field: "Hall", **empty}]}))[field]
    found = linked[0] if isinstance(linked, list) else linked
    assert (found["id"] != full["id"]) == differs
    again = (await api.event(**{field: [{field: "Hall", **empty}]}))[field]
    assert again == linked


async def test_terms_by_id_slug_and_name_and_new_ones(api: Api) -> None:
    jazz = await api.made("categories", name="Jazz & Blues", slug="jazz")
    event = await api.event(categories=[jazz["id"], "jazz", "JAZZ & BLUES", "Folk"])
    assert [category["name"] for category in event["categories"]] == ["Folk", "Jazz & Blues"]
    status, problem = await api.post("/events", {"title": "x", **DAY, "tags": [4711]})
    assert (status, list(problem["data"]["params"])) == (400, ["tags"])


async def test_nothing_is_created_with_an_event_that_is_refused(api: Api) -> None:
    body = {"title": "x", **DAY, "venue": {"venue": "New"}, "tags": ["new"], "organizer": 4711}
    assert (await api.post("/events", body))[0] == 400
    assert await api.ids("venues") == []
    assert await api.ids("tags", hide_empty="0") == []


async def test_single_event_describes_itself_to_search_engines(api: Api) -> None:
    venue = {"venue": "Hall", "city": "Oslo", "geo_lat": 59.9, "geo_lng": 10.7}
    event = await api.event(
        venue=venue, organizer={"organizer": "Bob"}, cost="€10 – €20", timezone="Europe/Oslo"
    )
    _, read = await api.get(f"/events/{event['id']}")
    described = read["json_ld"]
    assert described["@type"] == "Event"
    assert described["startDate"] == "2027-06-01T10:00:00+02:00"
    assert described["location"][0]["geo"]["latitude"] == 59.9
    assert described["organizer"][0]["name"] == "Bob"
    assert (described["offers"]["lowPrice"], described["offers"]["priceCurrency"]) == ("10", "EUR")


async def test_password_protects_reading_updating_and_deleting(api: Api) -> None:
    event = await api.event("Secret meeting", description="zebra", password="s3cret", tags=["hush"])
    path, by_slug = f"/events/{event['id']}", "/events/by-slug/secret-meeting"
    for method, address in [
        ("GET", path),
        ("PATCH", path),
        ("DELETE", path),
        ("GET", by_slug),
        ("DELETE", by_slug),
    ]:
        body = {} if method == "PATCH" else None
        status, problem = await api.send(method, address, body)
        assert (status, problem["code"]) == (403, "event-password-protected"), (method, address)
    assert (await api.get(path, password="wrong"))[0] == 403
    assert (await api.get(path, password="s3cret"))[1]["description"] == "zebra"
    assert (await api.send("GET", by_slug, headers={"X-Event-Password": "s3cret"}))[0] == 200
    _, page = await api.get("/events")
    assert (page["events"][0]["title"], page["events"][0]["description"]) == ("Secret meeting", "")
    assert page["events"][0]["tags"] == []
    for word in ("zebra", "secret"):
        assert await api.ids("events", search=word) == []
    assert (await api.patch(path, {"password": "s3cret", "new_password": ""}))[0] == 200
    assert (await api.get(path))[0] == 200
    assert await api.ids("events", search="zebra") == [event["id"]]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"start_date": "2027-03-10"}, "cdef"),
        ({"start_date": "2027-03-10 15:00:00"}, "cdef"),
        ({"start_date": "2027-03-10 15:00:00", "strict_dates": "1"}, "ef"),
        ({"end_date": "2027-03-10"}, "abcd"),
        ({"end_date": "2027-03-10 12:00:00", "strict_dates": "true"}, "ab"),
        ({"starts_after": "2027-03-09"}, "cdefg"),
        ({"starts_before": "2027-03-09"}, "ab"),
        ({"starts_before": "2027-03-09 22:00:00", "strict_dates": "yes"}, "a"),
        ({"ends_before": "2027-03-10"}, "abcd"),
        ({"ends_after": "2027-03-10"}, "efg"),
        ({"start_date": "2027-03-09", "end_date": "2027-03-10"}, "bcd"),
        ({"starts_after": "2027-03-09", "starts_before": "2027-03-10"}, "cde"),
    ],
)
async def test_date_filters(api: Api, query: dict[str, str], found: str) -> None:
    times = {
        "a": ("2027-03-08 10:00", "2027-03-08 12:00"),
        "b": ("2027-03-09 22:00", "2027-03-10 02:00"),
        "c": ("2027-03-10", "2027-03-10"),
        "d": ("2027-03-10 14:00", "2027-03-10 16:00"),
        "e": ("2027-03-10 23:00", "2027-03-11 01:00"),
        "f": ("2027-03-12 10:00", "2027-03-13 12:00"),
        "g": ("2035-01-01 10:00", "2035-01-01 12:00"),
    }
    for title, (start, end) in times.items():
        await api.event(title, start_date=start, end_date=end, all_day=title == "c")
    _, page = await api.get("/events", per_page="50", **query)
    assert "".join(event["title"] for event in page["events"]) == found
    assert page["total"] == len(found)


async def test_whole_days_are_the_site_s(make_api: MakeApi) -> None:
    api = await make_api(timezone="America/New_York")
    late = await api.event(start_date="2027-06-01 23:00:00", end_date="2027-06-01 23:30:00")
    assert (late["timezone"], late["utc_start_date"]) == ("America/New_York", "2027-06-02 03:00:00")
    assert await api.ids("events", start_date="2027-06-01", end_date="2027-06-01") == [late["id"]]
    assert await api.ids("events", start_date="2027-06-02") == []


async def test_filters_and_together(api: Api) -> None:
    parent = await api.made("categories", name="Music")
    child = await api.made("categories", name="Jazz", parent=parent["id"])
    hall = await api.made("venues", venue="Hall", geo_lat=52.52, geo_lng=13.405)
    both = await api.event("Both", categories=[child["id"]], venue=hall["id"], tags=["a b"], featured=True)
    other = await api.event("Other", categories=[parent["id"]], ticketed=True, post_parent=both["id"])
    cases: list[tuple[dict[str, Any], list[Any]]] = [
        ({"categories": str(parent["id"])}, [both, other]),
        ({"categories": "jazz"}, [both]),
        ({"categories": "JAZZ,Music"}, [both, other]),
        ({"tags": "a b"}, [both]),
        ({"venue": str(hall["id"]), "categories": "music"}, [both]),
        ({"featured": "no"}, [other]),
        ({"ticketed": "on"}, [other]),
        ({"post_parent": str(both["id"])}, [other]),
        ({"geoloc": "true"}, [both]),
        ({"geoloc": "false"}, [other]),
        ({"geoloc_lat": "52.5", "geoloc_lng": "13.4"}, [both]),
        ({"geoloc_lat": "52.5", "geoloc_lng": "13.4", "geoloc_radius": "1"}, []),
        ({"search": "bot"}, [both]),
        ({"search": "ther"}, [other]),
        ({"order": "desc"}, [other, both]),
        ({"orderby": "title"}, [both, other]),
        ({"include": f"{other['id']},{both['id']}", "start_date": "2040-01-01"}, [both, other]),
        ({"include": "4711"}, []),
    ]
    for query, found in cases:
        assert await api.ids("events", **query) == [event["id"] for event in found], query


@pytest.mark.parametrize("name", ["categories", "tags", "venue", "organizer", "post_parent"])
async def test_unknown_records_in_filters_are_refused(api: Api, name: str) -> None:
    status, problem = await api.get("/events", **{name: "4711"})
    assert (status, list(problem["data"]["params"])) == (400, [name])


async def test_one_coordinate_alone_is_refused(api: Api) -> None:
    status, problem = await api.get("/events", geoloc_lat="1")
    assert (status, list(problem["data"]["params"])) == (400, ["geoloc_lng"])


async def test_hidden_events_are_left_out_of_lists(api: Api) -> None:
    hidden = await api.event(hide_from_listings=True)
    assert await api.ids("events") == []
    assert await api.ids("events", include=str(hidden["id"])) == []
    assert (await api.get(f"/events/{hidden['id']}"))[0] == 200


@pytest.mark.parametrize(
    ("search", "is_found"),
    [
        ("summer", True),
        ("ummer conc", True),
        ("CONCERT füsse", True),
        ('"summer concert"', True),
        ('"concert summer"', False),
        ("zebra-word", True),
        ("bra-wo", True),
        ("strong", False),
        ("bold", True),
        ("100%", True),
        ("%", True),
        ("a&b", True),
        (".*", False),
        ("(a+)+$", False),
        ("nowhere", False),
    ],
)
async def test_search_finds_any_part_of_any_word(api: Api, search: str, is_found: bool) -> None:
    text = "Nackte <strong>Bold</strong> Füße, a zebra-word, 100% and a&amp;b"
    event = await api.event("Summer Concert", description=text)
    await api.event("Unrelated")
    assert await api.ids("events", search=search) == ([event["id"]] if is_found else [])


async def test_places_follow_their_venues(api: Api) -> None:
    hall = await api.made("venues", venue="Hall", geo_lat=10, geo_lng=20)
    annex = await api.made("venues", venue="Annex", geo_lat=-45, geo_lng=179.9)
    event = await api.event(venue=[hall["id"], annex["id"]])
    here = {"geoloc_lat": "10", "geoloc_lng": "20", "geoloc_radius": "5"}
    there = {"geoloc_lat": "-45", "geoloc_lng": "-179.9", "geoloc_radius": "20"}
    nowhere = {"geoloc_lat": "50", "geoloc_lng": "60", "geoloc_radius": "5"}

    async def found(**query: str) -> bool:
        return await api.ids("events", **query) == [event["id"]]

    assert (await found(**here), await found(**there), await found(**nowhere)) == (True, True, False)
    await api.patch(f"/venues/{hall['id']}", {"geo_lat": 50, "geo_lng": 60})
    assert (await found(**here), await found(**there), await found(**nowhere)) == (False, True, True)
    await api.delete(f"/venues/{hall['id']}")
    assert (await found(**nowhere), await found(geoloc="true")) == (False, True)
    await api.delete(f"/venues/{annex['id']}")
    assert (await found(**there), await found(geoloc="false")) == (False, True)
    await api.patch(f"/venues/{hall['id']}", {"status": "publish"})
    assert (await found(**nowhere), await found(geoloc="true")) == (True, True)


async def test_a_circle_with_too_many_venues_is_refused(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "MAX_VENUES_NEAR", 2)
    at = [await api.made("venues", venue=f"Hall {n}", geo_lat=10, geo_lng=20 + n) for n in range(3)]
    event = await api.event(venue=at[0]["id"])
    place = {"geoloc_lat": "10", "geoloc_lng": "20"}
    assert await api.ids("events", **place, geoloc_radius="150") == [event["id"]]
    status, problem = await api.get("/events", **place, geoloc_radius="300")
    assert (status, list(problem["data"]["params"])) == (400, ["geoloc_radius"])


@pytest.mark.parametrize("plural", ["categories", "tags"])
async def test_a_string_of_digits_means_the_same_in_writes_and_filters(api: Api, plural: str) -> None:
    """An ID if there is such a term, else a slug, else a name. It never creates a term."""
    by_id = await api.made(plural, name="By id")
    await api.made(plural, name="Shadowed", slug=str(by_id["id"]))
    by_slug = await api.made(plural, name="By slug", slug="202700")
    by_name = await api.made(plural, name="0202800", slug="a-year")
    huge = await api.made(plural, name="9" * 19, slug="huge")
    cases = [
        (str(by_id["id"]), by_id),
        (f"0{by_id['id']}", by_id),
        ("202700", by_slug),
        (" 202700 ", by_slug),
        ("0202800", by_name),
        ("9" * 19, huge),
    ]
    for text, term in cases:
        event = await api.event(**{plural: [text]})
        assert [one["id"] for one in event[plural]] == [term["id"]], text
        _, updated = await api.patch(f"/events/{event['id']}", {plural: text})
        assert [one["id"] for one in updated[plural]] == [term["id"]], text
        assert event["id"] in await api.ids("events", **{plural: text}), text
    assert await api.ids("events", **{plural: "shadowed"}) == []
    before = await api.ids(plural, hide_empty="0")
    for unknown in ("202701", "00", "9" * 18, 202700, {"id": "202700"}, ["New", "202701"]):
        status, problem = await api.post("/events", DAY | {"title": "Event", plural: unknown})
        assert (status, list(problem["data"]["params"])) == (400, [plural]), unknown
    for unknown in ("202701", "00", "9" * 18):
        status, problem = await api.get("/events", **{plural: unknown})
        assert (status, list(problem["data"]["params"])) == (400, [plural]), unknown
    assert await api.ids(plural, hide_empty="0") == before


ALL_DAY = [
    ("America/Scoresbysund", "2027-03-27 23:30", "2027-03-27 00:00:00", "2027-03-27 22:59:59"),
    ("America/Scoresbysund", "2027-03-27", "2027-03-27 00:00:00", "2027-03-27 22:59:59"),
    ("America/Scoresbysund", "2027-03-28T00:59:59Z", "2027-03-27 00:00:00", "2027-03-27 22:59:59"),
    ("America/Scoresbysund", "2027-03-28T01:00:00Z", "2027-03-28 00:00:00", "2027-03-28 23:59:59"),
    ("America/Sao_Paulo", "2018-11-04 00:30", "2018-11-04 01:00:00", "2018-11-04 23:59:59"),
    ("America/Sao_Paulo", "2018-11-03", "2018-11-03 00:00:00", "2018-11-03 23:59:59"),
    ("Asia/Beirut", "2024-03-31", "2024-03-31 01:00:00", "2024-03-31 23:59:59"),
    ("Africa/Cairo", "2024-04-26 00:00", "2024-04-26 01:00:00", "2024-04-26 23:59:59"),
    ("Europe/Paris", "2027-03-28 02:30", "2027-03-28 00:00:00", "2027-03-28 23:59:59"),
    ("Pacific/Apia", "2011-12-30 12:00", "2011-12-31 00:00:00", "2011-12-31 23:59:59"),
]


@pytest.mark.parametrize(("zone", "sent", "start", "end"), ALL_DAY)
async def test_an_all_day_event_keeps_its_day(api: Api, zone: str, sent: str, start: str, end: str) -> None:
    """Also where clocks skip midnight or the last hour of a day. Its own values sent back change nothing."""
    event = await api.event(start_date=sent, end_date=sent, all_day=True, timezone=zone)
    assert (event["start_date"], event["end_date"]) == (start, end)
    own = {name: event[name] for name in ("start_date", "end_date", "all_day", "timezone")}
    for body in (own, {"end_date": end}, {"start_date": start}, {"all_day": True}, {"timezone": zone}):
        status, updated = await api.patch(f"/events/{event['id']}", body)
        assert status == 200, updated
        times = {name for name in event if name.endswith(("_date", "_date_details", "_abbr"))}
        assert {name: updated[name] for name in times} == {name: event[name] for name in times}
    await agrees(api.store)


async def test_a_day_in_a_filter_ends_where_the_clock_skips_its_last_hour(make_api: MakeApi) -> None:
    api = await make_api(timezone="America/Scoresbysund")
    times = ("2027-03-27 22:30", "2027-03-28 00:15")
    last, first = [(await api.event(start_date=at, end_date=at))["id"] for at in times]
    for day in ("2027-03-27", "2027-03-27 23:30"):
        assert await api.ids("events", ends_before=day) == [last]
        assert await api.ids("events", starts_after=day) == [first]
        assert await api.ids("events", start_date=day) == [last, first]


async def test_a_day_in_a_filter_includes_the_hour_that_clocks_show_twice(make_api: MakeApi) -> None:
    """In Cairo clocks go back from 24:00 to 23:00 at 21:00 UTC."""
    api = await make_api(timezone="Africa/Cairo")
    times = ("2027-10-28T20:30:00Z", "2027-10-28T21:30:00Z", "2027-10-28T22:00:00Z")
    made = [await api.event(start_date=at, end_date=at, timezone="UTC") for at in times]
    first, second, next_day = [event["id"] for event in made]
    both = [first, second]
    assert await api.ids("events", start_date="2027-10-28", end_date="2027-10-28") == both
    assert await api.ids("events", starts_after="2027-10-27", starts_before="2027-10-28") == both
    assert await api.ids("events", start_date="2027-10-29") == [next_day]
    assert await api.ids("events", starts_after="2027-10-28") == [next_day]
    assert await api.ids("events", ends_after="2027-10-28") == [next_day]


PARIS = {"timezone": "Europe/Paris"}
"""On 2027-10-31 clocks go back from 03:00 to 02:00 at 01:00 UTC."""


async def test_an_instant_stays_what_it_is_when_clocks_show_it_for_the_second_time(api: Api) -> None:
    event = await api.event(**PARIS, start_date="2027-10-31T00:45:00Z", end_date="2027-10-31T01:15:00Z")
    shown = {name: event[name] for name in event if name.endswith("_date")}
    assert shown == {
        "start_date": "2027-10-31 02:45:00",
        "end_date": "2027-10-31 02:15:00",
        "utc_start_date": "2027-10-31 00:45:00",
        "utc_end_date": "2027-10-31 01:15:00",
    }
    path = f"/events/{event['id']}"
    own = {name: event[name] for name in ("start_date", "end_date", "timezone", "all_day")}
    for body in (
        own,
        {"end_date": own["end_date"]},
        {"all_day": False},
        PARIS,
        {"timezone": "Europe/Berlin"},
    ):
        status, updated = await api.patch(path, body)
        assert (status, {name: updated[name] for name in shown}) == (200, shown), body
    assert await api.ids("events", ends_after="2027-10-31T01:14:59Z", strict_dates="1") == [event["id"]]
    await agrees(api.store)
    for sent, utc in (
        ("2027-10-31T00:15:00Z", "00:15:00"),  # the first time
        ("2027-10-31T01:15:00Z", "01:15:00"),
        ("2027-10-31 02:30:00", "00:30:00"),  # without an offset it is the first
    ):
        status, updated = await api.patch(path, {"start_date": sent, "end_date": sent})
        assert (status, updated["utc_start_date"], updated["utc_end_date"]) == (
            200,
            f"2027-10-31 {utc}",
            f"2027-10-31 {utc}",
        )


async def test_a_time_that_clocks_show_twice_is_the_first_in_another_zone(api: Api) -> None:
    """Changing only the zone keeps the wall clock, not the instant."""
    event = await api.event(**PARIS, start_date="2027-10-31T01:15:00Z", end_date="2027-10-31T01:15:00Z")
    _, moved = await api.patch(f"/events/{event['id']}", {"timezone": "Europe/London"})
    assert (moved["start_date"], moved["utc_start_date"]) == ("2027-10-31 02:15:00", "2027-10-31 02:15:00")
    _, back = await api.patch(f"/events/{event['id']}", PARIS)
    assert (back["start_date"], back["utc_start_date"]) == ("2027-10-31 02:15:00", "2027-10-31 00:15:00")


async def test_a_new_venue_whose_date_cannot_be_converted_fails_only_its_own_request(
    make_api: MakeApi,
) -> None:
    api = await make_api(timezone="Europe/Paris")
    times = {"start_date": "2027-06-01 10:00:00", "end_date": "2027-06-01 12:00:00"}
    bad = {"title": "Bad", "venue": {"venue": "Hall", "date": "0001-01-01"}, **times}
    good = {"title": "Good", "venue": {"venue": "Hall"}, **times}
    answers = await asyncio.gather(*(api.post("/events", sent) for sent in (good, bad, good)))
    assert [status for status, _ in answers] == [201, 400, 201]
    reason = "The date must be within the years 1 to 9999, in UTC and in its time zone."
    assert answers[1][1]["data"]["params"] == {"venue": f"Invalid data for a new record: date ({reason})."}


async def test_what_is_wrong_with_a_new_venue_is_told_in_the_language_of_the_request(api: Api) -> None:
    times = {"start_date": "2027-06-01 10:00:00", "end_date": "2027-06-01 12:00:00"}
    venue = {"venue": "{Hall}", "geo_lat": "{north}", "date": "0001-01-99"}
    status, body = await api.post("/events?lang=de", {"title": "Bad", "venue": venue, **times})
    said = (
        "date (Dieses Datum oder diese Uhrzeit gibt es nicht.), geo_lat (Muss eine Zahl von -90 bis 90 sein.)"
    )
    assert status == 400
    assert body["data"]["params"] == {"venue": f"Ungültige Daten für einen neuen Datensatz: {said}."}


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo", "UTC"])
async def test_days_from_now_are_instants_in_any_zone(api: Api, zone: str) -> None:
    body = {"timezone": zone, "start_date": "now +24 hours", "end_date": "now +1 day", "all_day": False}
    event = await api.event("Soon", **body)
    assert event["utc_start_date"] == event["utc_end_date"]
