"""Feeds: every format is read back by a library that others wrote, and compared with the JSON list."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import feedparser
import icalendar
import pytest
import vobject

from handlers import feed_validators, feeds
from schemas import EVENT, KINDS
from schemas.formats import FORMATS, formats_of
from schemas.formats.content_lines import to_bytes
from schemas.formats.csv_table import cell
from schemas.formats.vtimezone import vtimezone
from schemas.values.zones import parse_zone
from tests.conftest import Api, MakeApi

SOON = {"start_date": "2027-06-01 10:00:00", "end_date": "2027-06-01 12:00:00"}
TITLES = (
    "Jazz, Blues; Soul \\ Funk",
    "= 1 + 1",
    "🏳️‍🌈 " + "é" * 80 + "🎷" * 40,
    "<b>x</b> & 'y' \"z\"",
    "two\nlines",
    "ends with a backslash \\",
)
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC+5:30")
ZONES += ("-03:00", "Europe/Dublin", "Africa/Casablanca", "America/Santiago", "Pacific/Apia")


@pytest.fixture
async def events(api: Api) -> list[Any]:
    """Events with every zone, near the changes of their clocks, all-day ones, and awkward texts."""
    hall = await api.made("venues", venue="Hall; 1st, floor", city="Köln", geo_lat=50.9, geo_lng=6.9)
    club = await api.made("organizers", organizer='The "Club"', email="club@example.org")
    made = []
    for at, zone in enumerate(ZONES * 3):
        day = ("2027-03-28", "2027-10-31", "2027-11-07", "2027-04-04", "2027-03-14")[at % 5]
        times = {"start_date": f"{day} 0{at % 4}:30:00", "end_date": f"{day} 0{4 + at % 5}:15:00"}
        made.append(
            await api.made(
                "events",
                **times,
                title=TITLES[at % len(TITLES)],
                timezone=zone,
                all_day=at % 4 == 3,
                description="<p>One</p><p>Two &amp; three</p>",
                venue=hall["id"] if at % 2 else [],
                organizer=club["id"] if at % 3 else [],
                categories=["Music, loud", "Jazz"] if at % 2 else [],
            )
        )
    await api.made("events", title="At once", start_date="2027-05-01 10:00", end_date="2027-05-01 10:00")
    return made


async def listed(api: Api, plural: str = "events", **query: str) -> list[Any]:
    status, page = await api.get(f"/{plural}", per_page="100", **query)
    assert status == 200, page
    found: list[Any] = page[plural]
    return found


async def text(api: Api, path: str, **query: str) -> str:
    status, _ = await api.get(path, **query)
    assert status == 200, api.text
    return api.text


def instant(moment: date | datetime) -> datetime:
    assert isinstance(moment, datetime)
    return moment.astimezone(UTC).replace(tzinfo=None)


def stamp(shown: str) -> datetime:
    return datetime.fromisoformat(shown)


async def test_icalendar_has_the_events_of_the_list(api: Api, events: list[Any]) -> None:
    rows = await listed(api)
    calendar = icalendar.Calendar.from_ical(await text(api, "/events.ics"))
    found = calendar.walk("VEVENT")
    assert "uid" not in calendar  # programs that split calendars by UID would take it for a single event
    assert [str(one["summary"]) for one in found] == [row["title"] for row in rows]
    assert len({one["uid"] for one in found}) == len(rows) == len(events) + 1
    for one, row in zip(found, rows, strict=True):
        if row["all_day"]:
            assert one.start == stamp(row["start_date"]).date()
            assert one.end == stamp(row["end_date"]).date() + timedelta(days=1)
        else:
            assert instant(one.start) == stamp(row["utc_start_date"]), row
            assert instant(one.end) == stamp(row["utc_end_date"]), row
        assert one["url"] == row["url"]
        assert str(one["status"]) == "CONFIRMED"
        if row["description"]:
            assert str(one["description"]) == "One\nTwo & three"
        assert ("location" in one) == bool(row["venue"])
        if row["venue"]:
            assert one["geo"].to_ical() == "50.9;6.9"
        if row["organizer"]:
            assert one["organizer"] == "mailto:club@example.org"
        assert [str(name) for name in one.categories] == [term["name"] for term in row["categories"]]


async def test_icalendar_lines_are_short_and_whole(api: Api, events: list[Any]) -> None:
    await api.get("/events.ics")
    async with api.client.get(api.store.site.namespace + "/events.ics") as answer:
        body = await answer.read()
    assert body.endswith(b"END:VCALENDAR\r\n")
    lines = body.split(b"\r\n")
    assert max(map(len, lines)) <= 75
    assert not [line for line in lines if b"\n" in line or b"\r" in line]
    for line in lines:
        line.decode()  # no character is cut in two


@pytest.mark.slow
@pytest.mark.parametrize("zone", [zone for zone in ZONES if "/" in zone])
def test_a_zone_is_right_in_all_its_years(zone: str) -> None:
    """Read back by another implementation, and compared every half hour."""
    written = to_bytes(vtimezone(parse_zone(zone), 2020, 2028))
    read = icalendar.Timezone.from_ical(written).to_tz(lookup_tzid=False)
    right, moment = ZoneInfo(zone), datetime(2020, 1, 1, tzinfo=UTC)
    while moment.year < 2029:
        wall = moment.astimezone(right).replace(tzinfo=None)
        # A time that the clock shows twice is the first one in iCalendar, and one that it skips is not used.
        if instant(wall.replace(tzinfo=right)) == moment.replace(tzinfo=None):
            assert wall.replace(tzinfo=read).utcoffset() == wall.replace(tzinfo=right).utcoffset(), wall
        moment += timedelta(minutes=30)


async def test_the_identity_of_an_event_stays_and_its_sequence_grows(api: Api, make_api: MakeApi) -> None:
    hall = await api.made("venues", venue="Hall")
    event = await api.event("Event", venue=hall["id"])

    async def read(where: Api) -> Any:
        return icalendar.Calendar.from_ical(await text(where, "/events.ics")).walk("VEVENT")[0]

    seen = [await read(api)]
    await api.patch(f"/events/{event['id']}", {"title": "Other", "slug": "quite-other"})
    seen.append(await read(api))
    await api.patch(f"/venues/{hall['id']}", {"venue": "Great Hall"})
    seen.append(await read(api))
    moved = await read(await make_api(base_url="https://elsewhere.example"))
    assert {str(one["uid"]) for one in (*seen, moved)} == {str(seen[0]["uid"])}
    assert [int(one["sequence"]) for one in seen] == sorted({int(one["sequence"]) for one in seen})
    assert str(seen[-1]["location"]) == "Great Hall"
    single = icalendar.Calendar.from_ical(await text(api, f"/events/{event['id']}.ics"))
    assert single.walk("VEVENT")[0].to_ical() == seen[-1].to_ical()
    assert await text(api, "/events/by-slug/quite-other.ics") == await text(api, f"/events/{event['id']}.ics")


async def test_an_event_in_the_trash_is_cancelled_for_those_who_saw_it(roles: dict[str, Api]) -> None:
    admin, uids, gone = roles["admin"], {}, {}

    async def found(who: str, **query: str) -> dict[str, str]:
        """The titles of the events that were made, and how each one is shown."""
        calendar = icalendar.Calendar.from_ical(await text(roles[who], "/events.ics", **query))
        return {uids[str(one["uid"])]: str(one["status"]) for one in calendar.walk("VEVENT")}

    for status in ("publish", "draft", "private"):
        for title in (f"{status} kept", f"{status} gone"):
            event = await admin.event(title, status=status, description="secret plan")
            single = icalendar.Calendar.from_ical(await text(admin, f"/events/{event['id']}.ics"))
            uids[str(single.walk("VEVENT")[0]["uid"])] = title
            if title.endswith("gone"):
                assert (await admin.delete(f"/events/{event['id']}"))[0] == 200
                gone[status] = event["id"]

    assert await found("public") == {"publish kept": "CONFIRMED", "publish gone": "CANCELLED"}
    assert roles["public"].text.count("secret plan") == 2  # as plain text and as HTML, of one event
    assert await found("public", search="gone") == {"publish gone": "CANCELLED"}
    assert "gone" not in roles["public"].text
    assert (await found("editor"))["draft gone"] == "CANCELLED"
    # Of the requested statuses, as calendars of pages request them.
    for who in ("public", "editor"):
        assert await found(who, status="publish") == {
            "publish kept": "CONFIRMED",
            "publish gone": "CANCELLED",
        }
    assert await found("editor", status="draft") == {"draft kept": "TENTATIVE", "draft gone": "CANCELLED"}
    assert await found("editor", status="trash,publish") == {
        "publish kept": "CONFIRMED",
        **{f"{status} gone": "CANCELLED" for status in gone},
    }
    assert roles["editor"].text.count("BEGIN:VEVENT") == 4
    assert "publish gone" not in await text(roles["public"], "/events.csv")
    change = {"$set": {"modified_utc": datetime(2026, 1, 1)}}
    await admin.store.database["events"].update_one({"_id": gone["publish"]}, change)
    assert "publish gone" not in await found("public")
    await admin.patch(f"/events/{gone['publish']}", {"status": "publish"})
    assert (await found("public"))["publish gone"] == "CONFIRMED"


async def test_a_feed_begins_thirty_days_ago_unless_dates_are_given(api: Api) -> None:
    for days in (-100, -29, 5):
        day = f"{datetime.now(UTC) + timedelta(days=days):%Y-%m-%d}"
        await api.event(f"In {days} days", start_date=day, end_date=day)
    titles = {row["Event Name"] for row in table(await text(api, "/events.csv"))}
    assert titles == {"In -29 days", "In 5 days"}
    titles = {
        row["Event Name"] for row in table(await text(api, "/events.csv", start_date="today -200 days"))
    }
    assert titles == {"In -100 days", "In -29 days", "In 5 days"}
    assert len(table(await text(api, "/events.csv", start_date="today"))) == 1


def table(body: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(body.removeprefix("\ufeff"), newline="")))


async def test_csv_opens_in_spreadsheets(api: Api, events: list[Any]) -> None:
    rows = await listed(api)
    async with api.client.get(api.store.site.namespace + "/events.csv") as answer:
        body = await answer.read()
    assert body.startswith(b"\xef\xbb\xbfEvent ID,Event Name,")
    found = table(body.decode())
    assert [int(one["Event ID"]) for one in found] == [row["id"] for row in rows]
    assert [one["Event Name"] for one in found] == [cell(row["title"]) for row in rows]
    assert "'= 1 + 1" in {one["Event Name"] for one in found}
    times = [f"{one['Event Start Date']} {one['Event Start Time']}" for one in found]
    assert times == [row["start_date"] for row in rows]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r="])
def test_no_cell_is_a_formula(start: str) -> None:
    assert cell(f"{start}SUM(1)").startswith("'")
    assert cell(-6.5) == -6.5


@pytest.mark.parametrize("ending", ["rss", "atom"])
async def test_readers_of_feeds_find_the_events(api: Api, events: list[Any], ending: str) -> None:
    rows = await listed(api)
    read = feedparser.parse(await text(api, f"/events.{ending}"), sanitize_html=False)
    assert not read.bozo, read.get("bozo_exception")
    assert read.version == {"rss": "rss20", "atom": "atom10"}[ending]
    assert [entry.link for entry in read.entries] == [row["url"] for row in rows]
    assert [entry.title for entry in read.entries] == [" ".join(row["title"].split("  ")) for row in rows]
    assert [entry.ev_startdate for entry in read.entries] == [
        row["utc_start_date"].replace(" ", "T") + "Z" for row in rows
    ]
    assert len({entry.id for entry in read.entries}) == len(rows)


async def test_every_atom_feed_has_an_identifier_of_its_own(api: Api, make_api: MakeApi) -> None:
    event = await api.event()
    paths = ("/events.atom", "/events.atom?search=event", f"/events/{event['id']}.atom")

    async def ids(where: Api) -> list[str]:
        return [feedparser.parse(await text(where, path)).feed.id for path in paths]

    found = await ids(api)
    assert len(set(found)) == len(paths)
    assert await ids(await make_api(base_url="https://elsewhere.example")) == found


async def test_geojson_and_json_ld(api: Api, events: list[Any]) -> None:
    rows = await listed(api)
    found = json.loads(await text(api, "/events.geojson"))
    assert found["type"] == "FeatureCollection"
    assert [one["properties"] for one in found["features"]] == rows
    for one in found["features"]:
        has_place = bool(one["properties"]["venue"])
        assert one["geometry"] == ({"type": "Point", "coordinates": [6.9, 50.9]} if has_place else None)
    described = json.loads(await text(api, "/events.jsonld"))
    assert described["@context"] == "https://schema.org"
    assert [one["identifier"] for one in described["@graph"]] == [row["id"] for row in rows]
    assert [one["name"] for one in described["@graph"]] == [row["title"] for row in rows]


async def test_address_books_open_the_cards(api: Api) -> None:
    for number in range(3):
        place = {"address": "1 Main; Street", "city": "Köln, Süd", "zip": "50667", "phone": "+49 221 1"}
        await api.made("venues", venue=f"Hall {number}; {'ü' * 90}", **place, geo_lat=50.9, geo_lng=6.9)
        await api.made("organizers", organizer=f"Club {number}", email="a@example.org")
    for plural, name in (("venues", "venue"), ("organizers", "organizer")):
        rows = await listed(api, plural)
        cards = list(vobject.readComponents(await text(api, f"/{plural}.vcf")))
        assert [card.fn.value for card in cards] == [row[name] for row in rows]
        assert [row[list(row)[1]] for row in table(await text(api, f"/{plural}.csv"))] == [
            row[name] for row in rows
        ]
    card = vobject.readOne(await text(api, f"/venues/{(await listed(api, 'venues'))[0]['id']}.vcf"))
    assert (card.adr.value.street, card.adr.value.city) == ("1 Main; Street", "Köln, Süd")
    points = json.loads(await text(api, "/venues.geojson"))["features"]
    assert [one["geometry"]["coordinates"] for one in points] == [[6.9, 50.9]] * 3


# HTTP


@pytest.mark.parametrize("kind", [kind for kind in KINDS if formats_of(kind)], ids=lambda kind: kind.plural)
async def test_every_format_has_an_ending_and_a_media_type(api: Api, kind: Any) -> None:
    await api.made(kind.plural, **kind.example)
    for ending, chosen in formats_of(kind).items():
        by_ending = await text(api, f"/{kind.plural}.{ending}")
        assert api.headers["Content-Type"].partition(";")[0] == chosen.media_type
        assert api.headers["X-Content-Type-Options"] == "nosniff"
        await api.send("GET", f"/{kind.plural}", headers={"Accept": f"{chosen.media_type}, */*;q=0.1"})
        assert api.text == by_ending
        assert "Accept," in api.headers["Vary"]
        assert (await api.send("HEAD", f"/{kind.plural}.{ending}"))[0] == 200
        assert api.text == ""


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("*/*", "application/json"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "application/json"),
        ("text/calendar", "text/calendar"),
        ("text/calendar;q=0.5, application/json", "application/json"),
        ("application/json;q=0.5, application/atom+xml;q=0.6", "application/atom+xml"),
        ("text/*", "application/json"),
        ("text/calendar;q=0", "application/json"),
        ("nonsense", "application/json"),
        ("TEXT/CSV; charset=utf-8", "text/csv"),
    ],
)
async def test_the_accept_header_chooses(api: Api, accept: str, media_type: str) -> None:
    event = await api.event()
    for path in ("/events", f"/events/{event['id']}", "/events/by-slug/event"):
        assert (await api.send("GET", path, headers={"Accept": accept}))[0] == 200
        assert api.headers["Content-Type"].partition(";")[0] == media_type


@pytest.mark.parametrize("chosen", FORMATS, ids=lambda chosen: chosen.ending)
async def test_an_unchanged_feed_is_not_rendered(
    api: Api, monkeypatch: pytest.MonkeyPatch, chosen: Any
) -> None:
    kind = next(kind for kind in KINDS if kind.name in chosen.kinds)
    record = await api.made(kind.plural, **kind.example)
    path = f"/{kind.plural}.{chosen.ending}"
    await text(api, path)
    tag = {"If-None-Match": api.headers["ETag"]}

    def refuse(*_: Any) -> Any:
        raise AssertionError("rendered")

    with monkeypatch.context() as patch:
        patch.setattr(feeds.FeedHandlers, "chunks", refuse)
        assert (await api.send("GET", path, headers=tag))[0] == 304
    await api.patch(f"/{kind.plural}/{record['id']}", {kind.name_field: "Another name"})
    assert (await api.send("GET", path, headers=tag))[0] == 200
    assert "Another name" in api.text


async def test_not_modified_since_is_never_said_of_a_changed_feed(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = await api.event()
    await text(api, "/events.ics")
    since = {"If-Modified-Since": api.headers["Last-Modified"]}
    assert (await api.send("GET", "/events.ics", headers=since))[0] == 200  # more may change in this second
    monkeypatch.setattr(feed_validators, "LATE_SECONDS", -100)
    await text(api, "/events.ics")
    since = {"If-Modified-Since": api.headers["Last-Modified"]}
    assert (await api.send("GET", "/events.ics", headers=since))[0] == 304
    await asyncio.sleep(1.1)
    await api.patch(f"/events/{event['id']}", {"title": "Changed"})
    assert (await api.send("GET", "/events.ics", headers=since))[0] == 200
    await text(api, "/events.ics", start_date="now")
    since = {"If-Modified-Since": api.headers["Last-Modified"]}
    await asyncio.sleep(1.1)
    assert (await api.send("GET", "/events.ics?start_date=now", headers=since))[0] == 200


@pytest.mark.parametrize("ending", list(formats_of(EVENT)))
async def test_a_wrong_filter_is_refused_as_in_the_list(api: Api, ending: str) -> None:
    for query in ({"geoloc_lat": "1"}, {"categories": "none"}, {"start_date": "soon"}, {"venue": "99"}):
        expected = await api.get("/events", **query)
        assert expected[0] == 400
        assert await api.get(f"/events.{ending}", **query) == expected
        assert await api.send("GET", "/events", params=query, headers={"Accept": "text/calendar"}) == expected


async def test_an_unknown_ending_is_no_route(api: Api) -> None:
    for path in ("/events.xls", "/categories.csv", "/events/1.vcf", "/events/by-slug/x.xls"):
        status, body = await api.get(path)
        assert (status, body["code"]) == (404, "rest_no_route"), path


async def test_filters_reach_the_feed(api: Api, events: list[Any]) -> None:
    for query in (
        {"categories": "jazz"},
        {"search": "blues"},
        {"geoloc_lat": "51", "geoloc_lng": "7"},
        {"starts_after": "2027-10-01"},
        {"include": f"{events[0]['id']},{events[3]['id']}"},
        {"orderby": "title", "order": "desc"},
    ):
        found = [int(row["Event ID"]) for row in table(await text(api, "/events.csv", **query))]
        assert found == [row["id"] for row in await listed(api, **query)]
        assert found


async def test_a_long_feed_is_sent_while_it_is_made(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others are served in between, and a client that goes away stops the work."""
    for number in range(60):
        await api.event(f"Event {number}")
    rendered: list[int] = []
    original = feeds.FeedHandlers.chunks

    async def counted(*arguments: Any) -> AsyncIterator[bytes]:
        async for chunk in original(*arguments):
            rendered.append(len(chunk))
            yield chunk
            await asyncio.sleep(0.05)

    monkeypatch.setattr(feeds.FeedHandlers, "chunks", counted)
    plain = {"Accept-Encoding": "identity"}
    async with api.client.get(api.store.site.namespace + "/events.csv", headers=plain) as answer:
        assert answer.headers["Transfer-Encoding"] == "chunked"
        first = await answer.content.readline()
        assert first.startswith(b"\xef\xbb\xbfEvent ID")
        assert len(rendered) < 3
        assert (await api.get("/events"))[0] == 200
        rest = await answer.read()
    assert rest.count(b"\r\n") == 60


async def test_a_feed_that_breaks_off_is_seen_to_be_incomplete(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(60):
        await api.event(f"Event {number}")
    find_many = api.store.find_many

    async def failing(kind: Any, ids: Any) -> Any:
        if len(failing_calls) > 1:
            raise ConnectionResetError
        failing_calls.append(ids)
        return await find_many(kind, ids)

    failing_calls: list[Any] = []
    monkeypatch.setattr(api.store, "find_many", failing)
    with pytest.raises(Exception, match=r"payload|Connection|Response"):
        async with api.client.get(api.store.site.namespace + "/events.ics") as answer:
            await answer.read()


async def test_an_event_of_thousands_of_years_has_no_time_zone_of_as_many(api: Api) -> None:
    """Every day of it would be looked at, and no other request would be served meanwhile."""
    event = await api.event(start_date="2027-06-01 10:00", end_date="9999-12-30", timezone="Europe/Berlin")
    for path in (f"/events/{event['id']}.ics", "/events.ics?starts_after=2027-01-01"):
        status, body = await api.get(path)
        (shown,) = icalendar.Calendar.from_ical(body).walk("VEVENT")
        assert status == 200
        assert shown["DTSTART"].dt.isoformat() == "2027-06-01T10:00:00+02:00"
        assert shown["DTEND"].dt.utcoffset() == timedelta(0)
        assert len(body) < 20_000


async def test_an_event_on_the_last_day_of_all_has_a_feed(api: Api) -> None:
    event = await api.event(start_date="9999-12-31", end_date="9999-12-31", all_day=True)
    for path in (f"/events/{event['id']}.ics", "/events.ics?starts_after=2027-01-01"):
        status, body = await api.get(path)
        (shown,) = icalendar.Calendar.from_ical(body).walk("VEVENT")
        assert (status, shown["DTSTART"].dt, "DTEND" in shown) == (200, date(9999, 12, 31), False)


async def test_an_event_is_in_utc_in_a_feed_that_does_not_define_its_zone(make_api: MakeApi) -> None:
    api = await make_api(timezone="Europe/Berlin")
    old = {"start_date": "1947-06-01 10:00:00", "end_date": "1947-06-01 12:00:00"}
    await api.made("events", title="Old", **old)
    await api.event("New")
    short = await text(api, "/events.ics?start_date=1947-01-01&end_date=1947-12-31")
    assert "DTSTART;TZID=Europe/Berlin:19470601T100000" in short
    long = await text(api, "/events.ics?start_date=1900-01-01&end_date=2100-12-31")
    assert "DTSTART:19470601T070000Z" in long
