"""The pages of the calendar: what each view shows, to whom, and in which language."""

from __future__ import annotations

import asyncio
import re
from datetime import date, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.pages.calendar import events, views
from handlers.pages.calendar.event_times import ShownEvent
from handlers.pages.calendar.grid import GridDay, weeks_of
from handlers.pages.calendar.periods import period_of
from tests.conftest import Api, MakeApi

VIEWS = ("month/2027-06", "week/2027-06-01", "day/2027-06-01", "list/2027-06-01")
HTML = {"Accept": "text/html"}
PAYLOAD = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


async def page(api: Api, path: str, **headers: str) -> str:
    status, body = await api.send("GET", f"/{path}", headers=HTML | headers)
    assert status == 200, (path, body)
    return str(body)


def titles(html: str) -> list[str]:
    """The titles of the events that a page links to, without those of continued days."""
    links = re.findall(r'<a href="/event/[^"]*"([^>]*)>(.*?)</a>', html, re.DOTALL)
    shown = [
        re.sub(r"<time.*?</time>|<[^>]*>", "", text) for rest, text in links if "aria-hidden" not in rest
    ]
    return [unescape(text).strip() for text in shown]


def days(html: str) -> dict[int, str]:
    """The cells of a month by the number of their day."""
    cells = re.findall(r"<td class=\"([^\"]*)\">(.*?)</td>", html, re.DOTALL)
    return {
        int(re.findall(r"<span>(\d+)</span>", cell)[0]): cell for kind, cell in cells if "outside" not in kind
    }


@pytest.mark.parametrize("view", VIEWS)
async def test_views_show_what_the_api_lists(api: Api, view: str) -> None:
    jazz = await api.event("Jazz & Blues", categories=["Music"])
    await api.event("Elsewhere", start_date="2029-01-01 10:00:00", end_date="2029-01-01 11:00:00")
    await api.event("Draft", status="draft")
    await api.event("Hidden", hide_from_listings=True)
    html = await page(api, f"/events/{view}/")
    assert titles(html) == ["Jazz & Blues", "Elsewhere"][: 2 if "list" in view else 1]
    assert f'href="/event/{jazz["slug"]}/"' in html
    assert titles(await page(api, f"/events/{view}/?categories=music")) == ["Jazz & Blues"]
    assert titles(await page(api, f"/events/{view}/?search=blu")) == ["Jazz & Blues"]
    assert titles(await page(api, f"/events/{view}/?featured=1")) == []


async def test_the_address_itself_shows_this_month(api: Api) -> None:
    today = datetime.now().replace(hour=12, minute=0, second=0, microsecond=0)
    await api.event("Now", start_date=str(today), end_date=str(today + timedelta(hours=1)))
    html = await page(api, "/")
    assert titles(html) == ["Now"]
    assert 'aria-current="date"' in html


async def test_a_slash_at_the_end_may_be_missing(api: Api) -> None:
    await api.event("Jazz")
    for path in (*VIEWS, "list"):
        assert titles(await page(api, f"/events/{path}")) == ["Jazz"], path
    await page(api, "/events")


async def test_an_event_is_on_every_day_that_it_has_in_its_own_zone(api: Api) -> None:
    """In UTC it is from the 5th, 14:00, to the 7th, 14:30."""
    times = {"start_date": "2027-06-06 02:00:00", "end_date": "2027-06-08 02:30:00"}
    await api.event("Kiritimati", timezone="Pacific/Kiritimati", **times)
    late = {"start_date": "2027-06-10 23:00:00", "end_date": "2027-06-11 00:00:00"}
    await api.event("Until midnight", **late)
    cells = days(await page(api, "/events/month/2027-06/"))
    assert [day for day, cell in cells.items() if "Kiritimati" in cell] == [6, 7, 8]
    assert [day for day, cell in cells.items() if "Until midnight" in cell] == [10]
    for day, expected in ((5, []), (6, ["Kiritimati"]), (8, ["Kiritimati"]), (9, [])):
        assert titles(await page(api, f"/events/day/2027-06-0{day}/")) == expected


async def test_what_does_not_fit_a_day_is_counted(api: Api) -> None:
    for number in range(11):
        await api.event(f"Event {number}")
    cell = days(await page(api, "/events/month/2027-06/"))[1]
    assert len(titles(cell)) == 4
    assert "+7 more" in cell
    assert 'href="/events/day/2027-06-01/"' in cell
    assert len(titles(await page(api, "/events/day/2027-06-01/"))) == 11
    assert len(titles(await page(api, "/events/week/2027-06-01/"))) == 11


async def test_a_month_with_very_many_events_shows_their_numbers(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in (1, 1, 1, 2):
        await api.event(start_date=f"2027-06-0{day} 10:00:00", end_date=f"2027-06-0{day} 11:00:00")
    await api.event("Long", start_date="2027-06-01 10:00:00", end_date="2027-06-03 11:00:00")
    for module in (views, events):
        monkeypatch.setattr(module, "MAX_IN_GRID", 4)
    cells = days(await page(api, "/events/month/2027-06/"))
    shown = {
        day: int(found[0]) for day, cell in cells.items() if (found := re.findall(r"Events: (\d+)", cell))
    }
    assert shown == {1: 4, 2: 1}, "the days on which they begin"
    assert len(titles(await page(api, "/events/day/2027-06-01/"))) == 4
    assert len(titles(await page(api, "/events/day/2027-06-02/"))) == 2


async def test_lists_have_pages_and_lead_to_past_events(api: Api) -> None:
    for number in range(21):
        await api.event(
            f"Event {number:02}", start_date="2027-06-01 10:00:00", end_date="2027-06-01 11:00:00"
        )
    await api.event("Old", start_date="2020-01-01 10:00:00", end_date="2020-01-01 11:00:00")
    await api.event("Older", start_date="2019-01-01 10:00:00", end_date="2019-01-01 11:00:00")
    first, second = [await page(api, f"/events/list/?page={number}") for number in (1, 2)]
    assert (len(titles(first)), titles(second)) == (20, ["Event 20"])
    assert ("page=2" in first, "page=1" in second) == (True, True)
    assert titles(await page(api, "/events/past/")) == ["Old", "Older"]
    assert (await api.send("GET", "//events/list/?page=3"))[0] == 404


async def test_lists_have_what_has_begun_but_not_ended(api: Api) -> None:
    today = datetime.now().replace(microsecond=0)
    begun, ends = str(today - timedelta(days=9)), str(today + timedelta(days=9))
    await api.event("Exhibition", start_date=begun, end_date=ends)
    assert titles(await page(api, "/events/list/")) == ["Exhibition"]


async def test_pages_are_as_current_as_the_api(api: Api) -> None:
    event = await api.event("First")
    assert titles(await page(api, "/events/month/2027-06/")) == ["First"]
    tag = api.headers["ETag"]
    assert (await api.send("GET", "//events/month/2027-06/", headers={"If-None-Match": tag}))[0] == 304
    await api.patch(f"/events/{event['id']}", {"title": "Second"})
    assert titles(await page(api, "/events/month/2027-06/", **{"If-None-Match": tag})) == ["Second"]
    await api.delete(f"/events/{event['id']}")
    assert titles(await page(api, "/events/month/2027-06/")) == []


async def test_each_caller_sees_what_they_may(roles: dict[str, Api]) -> None:
    await roles["editor"].event("Draft", status="draft")
    await roles["editor"].event("Public")
    for who, expected in (("public", 400), ("editor", 200)):
        status, html = await roles[who].send("GET", "//events/list/?status=draft", headers=HTML)
        assert (status, "Draft" in html) == (expected, expected == 200), who
        assert titles(await page(roles[who], "/events/list/")) == ["Public"]


async def test_protected_events_show_no_more_than_the_api_does(roles: dict[str, Api]) -> None:
    venue = {"venue": "Secret hall", "city": "Secret city"}
    await roles["editor"].event(
        "Protected", password="p", venue=venue, cost="4711", description="Secret text"
    )
    for view in VIEWS:
        html = await page(roles["public"], f"/events/{view}/")
        assert "Protected" in html
        assert not re.search("Secret|4711", html), view


@pytest.mark.parametrize(
    ("language", "title", "first", "today"),
    [
        ("en", "June 2027", "Sunday", "Today"),
        ("de", "Juni 2027", "Montag", "Heute"),
        ("es", "Junio de 2027", "lunes", "Hoy"),
        ("fr", "Juin 2027", "lundi", "Aujourd"),
    ],
)
async def test_languages_have_their_own_words_and_weeks(
    api: Api, language: str, title: str, first: str, today: str
) -> None:
    by_address = await page(api, f"/events/month/2027-06/?lang={language}")
    by_header = await page(api, "/events/month/2027-06/", **{"Accept-Language": language})
    for html in (by_address, by_header):
        assert f'<html lang="{language}"' in html
        assert f"<h1>{title}</h1>" in html
        assert re.search(r'<abbr title="(\w+)"', html).group(1) == first  # type: ignore[union-attr]
        assert today in html
    assert f"/events/week/2027-06-01/?lang={language}" in by_address
    assert "lang=" not in by_header.split("<main")[1].split("</main>")[0]


async def test_wrong_addresses_are_refused_like_those_of_the_api(api: Api) -> None:
    for path, status in (
        ("events/month/2027-13/", 404),
        ("events/month/1850-01/", 404),
        ("events/month/9999-12/", 404),
        ("events/day/2027-02-30/", 404),
        ("events/year/2027/", 404),
        ("events/list/?page=0", 400),
        ("events/list/?page=x", 400),
        ("events/list/?categories=none", 400),
        ("events/month/?venue=x", 400),
        ("embed/month?date=soon", 404),
    ):
        assert (await api.send("GET", f"//{path}"))[0] == status, path


async def test_months_at_the_ends_of_the_calendar(api: Api) -> None:
    for path in ("month/1900-01", "week/1900-01-01", "day/2199-12-31", "month/2199-12"):
        await page(api, f"/events/{path}/")


async def test_embedded_views_may_be_framed_and_others_not(api: Api) -> None:
    await api.event("Jazz", categories=["Music"])
    await api.event("Other")
    html = await page(api, "/embed/month?date=2027-06&categories=music")
    assert titles(html) == ["Jazz"]
    assert "frame-ancestors *" in api.headers["Content-Security-Policy"]
    assert 'href="/embed/month?categories=music&amp;date=2027-07-01"' in html
    assert ('target="_top"' in html, "<footer" in html, "<header" in html) == (True, False, False)
    await page(api, "/events/month/2027-06/")
    assert "frame-ancestors 'self'" in api.headers["Content-Security-Policy"]


async def test_filters_in_effect_tell_no_names_that_the_caller_may_not_see(roles: dict[str, Api]) -> None:
    for status, seen in (("publish", True), ("private", False), ("draft", False), ("trash", False)):
        venue = await roles["editor"].made("venues", venue="Secret", status="publish")
        await roles["editor"].patch(f"/venues/{venue['id']}", {"status": status})
        _, html = await roles["public"].send("GET", f"//events/list/?venue={venue['id']}", headers=HTML)
        assert ("Secret" in html) == seen, status


async def test_filters_in_effect_can_be_removed(api: Api) -> None:
    place = "geoloc_lat=48&geoloc_lng=8&geoloc_radius=50"
    html = await page(api, f"/events/list/?{place}&tags[]=&featured=1&search=x")
    chips = re.findall(r'<li><a class="button" href="([^"]*)"', html)
    assert [unescape(link) for link in chips] == [
        "/events/list/?featured=1&search=x",
        f"/events/list/?{place}&search=x",
    ]
    for link in chips:
        await page(api, unescape(link))


async def test_a_page_expires_when_one_of_its_events_is_over(api: Api) -> None:
    now = api.store.site.now()
    start, end = now - timedelta(hours=1), now + timedelta(seconds=2)
    event = await api.event("Soon over", start_date=str(start), end_date=str(end))
    paths = ("/events/list/", f"/event/{event['slug']}/")
    for path in paths:
        assert not re.search('card past|"notice"', await page(api, path))
    await asyncio.sleep(2.5)
    for path in paths:
        assert re.search('card past|"notice"', await page(api, path)), path


async def test_sticky_events_are_shown_first(api: Api) -> None:
    for number in range(6):
        await api.event(f"Event {number}", sticky=number == 5)
    assert titles(days(await page(api, "/events/month/2027-06/"))[1])[0] == "Event 5"


async def test_times_that_look_the_same_or_reversed_are_written_out(api: Api) -> None:
    """Clocks in Berlin are set back at three: half past two is there twice."""
    day = {"timezone": "Europe/Berlin"}
    await api.event("Whole", start_date="2027-06-01", end_date="2027-06-02", **day)
    times = {"start_date": "2027-10-31T00:45:00Z", "end_date": "2027-10-31T01:15:00Z"}
    await api.event("Back", **times, **day)
    html = await page(api, "/events/list/2027-01-01/")
    whole, back = re.findall(r"<time [^>]*>\s*(.*?)\s*</time>", html, re.DOTALL)
    assert whole == "Tue, Jun 1, 2027"
    assert back.replace("\u202f", " ") == "Sun, Oct 31, 2027, 2:45 AM – 2:15 AM"


async def test_the_calendar_has_ends(api: Api) -> None:
    for path in ("month/1900-01", "day/1900-01-01"):
        assert 'rel="prev' not in await page(api, f"/events/{path}/")
    for path in ("month/2199-12", "day/2199-12-31"):
        assert 'rel="next' not in await page(api, f"/events/{path}/")
    _, html = await api.send("GET", "//events/month/2300-01/", headers=HTML)
    assert "There is no calendar for this date." in html


async def test_links_of_frames_leave_them(api: Api) -> None:
    await api.event(venue={"venue": "Hall", "geo_lat": 48, "geo_lng": 8})
    html = await page(api, "/embed/map")
    assert len(re.findall(r'href="/venue/hall/" ?target="_top"', html)) == 2
    _, html = await api.send("GET", "//embed/list?date=2300-01-01", headers=HTML)
    assert html.count('target="_top"') == 2


async def test_venues_that_hide_their_map_are_not_on_one(api: Api) -> None:
    await api.event(venue={"venue": "Hall", "geo_lat": 48, "geo_lng": 8, "show_map": False})
    assert "/venue/hall/" not in await page(api, "/events/map/")


async def test_texts_of_others_are_shown_as_text(api: Api) -> None:
    venue = {"venue": f"Hall {PAYLOAD}", "city": PAYLOAD}
    event = await api.event(f"A {PAYLOAD}", venue=venue, categories=[f"C {PAYLOAD}"], cost=PAYLOAD)
    await api.store.database["events"].update_many({}, {"$set": {"title": PAYLOAD, "version": 9}})
    for path in (*(f"events/{view}/" for view in VIEWS), f"events/list/?venue={event['venue']['id']}"):
        html = await page(api, f"/{path}")
        assert ("<script>alert" in html, "<img src=x" in html) == (False, False), path
        assert "&lt;script&gt;" in html
    html = await page(api, "/events/list/?search=%3Cscript%3Ealert(1)%3C/script%3E%22%27")
    assert "<script>alert" not in html


async def test_the_title_of_the_site(make_api: MakeApi) -> None:
    named = await make_api(title="Freiburg & more")
    html = await page(named, "/events/month/2027-06/")
    assert "<title>June 2027 · Freiburg &amp; more</title>" in html
    _, feed = await named.get("/events.rss")
    assert "Freiburg &amp; more" in feed


async def test_links_lead_to_the_path_of_the_public_address(make_api: MakeApi) -> None:
    api = await make_api(base_url="https://example.org/what/is/on")
    await api.event()
    html = await page(api, "/events/month/2027-06/")
    links = set(re.findall(r'(?:href|src|action)="([^"]*)"', html)) - {"#content"}
    assert {
        link for link in links if not link.startswith(("/what/is/on/", "https://example.org/what/is/on/"))
    } == {link for link in links if link.startswith("webcal://example.org/what/is/on/")}


async def test_files_are_kept_for_ever_under_names_that_change_with_them(api: Api) -> None:
    html = await page(api, "/")
    for name in ("kalends.css", "kalends.js", "icon.svg"):
        found = re.search(rf'"(/assets/{name}\?v=\w+)"', html)
        assert found, name
        assert (await api.send("GET", f"/{found[1]}"))[0] == 200
        assert "immutable" in api.headers["Cache-Control"]
    assert (await api.send("GET", "//assets/nothing.css"))[0] == 404
    assert (await api.send("GET", "//assets/..%2frendering.py"))[0] == 404


def shown(first: date, length: int, hour: int) -> ShownEvent:
    start = datetime(first.year, first.month, first.day, hour)
    end = start + timedelta(days=length, hours=1)
    record = {"start_date": str(start), "end_date": str(end), "utc_end_date": str(end), "sticky": hour == 5}
    return ShownEvent(record, start)


@given(
    st.lists(
        st.builds(
            shown, st.dates(date(2027, 5, 20), date(2027, 7, 10)), st.integers(0, 40), st.integers(0, 22)
        ),
        max_size=25,
    ),
    st.integers(0, 6),
    st.integers(1, 6),
)
def test_every_event_is_once_on_each_of_its_days(
    events: list[ShownEvent], first_weekday: int, max_rows: int
) -> None:
    period = period_of("month", date(2027, 6, 15), first_weekday)
    weeks = weeks_of(period, events, first_weekday, max_rows=max_rows)
    cells: list[GridDay] = [day for week in weeks for day in week]
    assert all(week[0].day.weekday() == first_weekday for week in weeks)
    assert [cell.day for cell in cells] == [cells[0].day + timedelta(at) for at in range(len(cells))]
    for cell in cells:
        there = [event for event in events if event.first_day <= cell.day <= event.last_day]
        placed: list[Any] = [row.event for row in cell.rows if row]
        assert len(placed) == len(set(map(id, placed)))
        assert len(placed) + cell.hidden == len(there)
        assert {id(event) for event in placed} <= {id(event) for event in there}
    for week in weeks:
        for event in events:
            rows = {cell.rows.index(row) for cell in week for row in cell.rows if row and row.event is event}
            assert len(rows) <= 1, "an event keeps its row during a week"
