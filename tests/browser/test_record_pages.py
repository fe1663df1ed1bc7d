"""The pages of records and the map in Chromium: with and without scripts, on wide and narrow screens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser

from tests.browser.conftest import OpenPage, Serve, Watched
from tests.test_faults import Running

WIDTHS = (390, 1280)
VENUE = {"venue": "Hall", "address": "1 Main St", "city": "Freiburg", "geo_lat": 48.0, "geo_lng": 7.85}
ELSEWHERE = {"venue": "Theatre", "city": "Rome", "geo_lat": 41.9, "geo_lng": 12.5}
TIMES = {"start_date": "2027-06-01 19:00", "end_date": "2027-06-01 22:00", "timezone": "Asia/Tokyo"}
HOSTILE = "<img src=x onerror=window.hit=1><svg onload=window.hit=1><script>window.hit=1</script>www.fair.org"


def create(service: Running, **body: Any) -> None:
    sent = json.dumps(TIMES | body).encode()
    request = Request(f"{service.api}/events", sent, {"Content-Type": "application/json"})
    with urlopen(request) as answer:
        assert answer.status == 201


@pytest.fixture(scope="module")
def service(serve: Serve) -> Running:
    service = serve()
    create(service, title="Fair", description=HOSTILE, venue=VENUE, tags=["jazz"], cost="€5")
    create(service, title="Play", venue=ELSEWHERE, organizer=[{"organizer": "Club"}], categories=["Stage"])
    create(service, title="Wedding", description="In the garden", password="tulip")
    return service


@pytest.fixture
def without_scripts(chromium: Browser, service: Running) -> Iterator[Watched]:
    context = chromium.new_context(java_script_enabled=False)
    yield Watched(context.new_page(), service.root.rpartition("/")[2])
    context.close()


PATHS = (
    *("/event/fair/", "/event/play/", "/venue/hall/", "/organizer/club/", "/events/tag/jazz/"),
    *("/events/category/stage/", "/events/map/", "/event/wedding/"),
)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("path", PATHS)
def test_nothing_goes_wrong(open_page: OpenPage, service: Running, path: str, width: int) -> None:
    watched = open_page(service.root + path, width)
    assert watched.page.locator("h1").count() == 1
    assert watched.page.evaluate("window.hit") is None
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert watched.page.evaluate(overflow) <= 0
    assert watched.problems == []


def test_an_event_shows_the_visitor_s_time_and_its_map(open_page: OpenPage, service: Running) -> None:
    page = open_page(service.root + "/event/fair/").page
    assert "UTC" in page.locator(".own-time").inner_text()
    assert page.locator("svg.map").bounding_box()["width"] > 200  # type: ignore[index]
    assert page.locator("a[href='http://www.fair.org']").get_attribute("rel") == "nofollow noopener ugc"
    with page.expect_download() as download:
        page.get_by_text("Add to my calendar").click()
    assert "BEGIN:VEVENT" in download.value.path().read_text()


def test_the_map_leads_to_venues_by_keyboard(open_page: OpenPage, service: Running) -> None:
    watched = open_page(service.root + "/events/map/")
    point = watched.page.get_by_role("link", name="Theatre, Rome: 1 event")
    point.focus()
    watched.page.keyboard.press("Enter")
    watched.page.wait_for_url("**/venue/theatre/")
    assert watched.page.locator("h1").inner_text() == "Theatre"
    assert watched.problems == []


def test_a_protected_event_opens_with_its_password(without_scripts: Watched, service: Running) -> None:
    page = without_scripts.page
    page.goto(service.root + "/event/wedding/")
    page.get_by_label("Password").fill("rose")
    page.get_by_role("button").click()
    assert page.locator(".error").inner_text() == "This password is wrong. Please try again."
    page.get_by_label("Password").fill("tulip")
    page.get_by_role("button").click()
    assert page.locator("h1").inner_text() == "Wedding"
    assert "In the garden" in page.locator("main").inner_text()


def test_a_page_that_does_not_exist_has_a_way_on(without_scripts: Watched, service: Running) -> None:
    page = without_scripts.page
    page.goto(service.root + "/nothing/here?lang=fr")
    assert page.locator("h1").inner_text() == "Page introuvable"
    page.get_by_role("searchbox").fill("Fair")
    page.keyboard.press("Enter")
    page.wait_for_url("**/events/list/?lang=fr&search=Fair")
    page.get_by_role("link", name="Fair").click()
    assert page.locator("h1").inner_text() == "Fair"
