"""The calendar in a real browser: with a mouse, with keys only, on a phone, without JavaScript."""

from __future__ import annotations

import json
import re
from datetime import date, timedelta
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage, Serve
from tests.test_faults import Running

VIEWS = ("month", "week", "day", "list", "past", "map")
SIZES = {"phone": 360, "desktop": 1280}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_readable_for_everybody(
    demo_service: Running, open_page: OpenPage, view: str, size: str, scheme: str
) -> None:
    watched = open_page(f"{demo_service.root}/events/{view}/", SIZES[size], color_scheme=scheme)
    assert watched.barriers() == []
    assert watched.is_within_width()
    watched.picture(f"{view}-{size}-{scheme}")
    assert watched.problems == []


RECORDS = (
    "event/festival-of-lights/",
    "venue/grand-hall/",
    "organizer/city-arts-council/",
    "events/category/concerts/",
    "events/tag/outdoor/",
    "edit/events",
    "edit/events/1",
    "edit/venues/new",
    "edit/categories",
    "nothing-here/",
)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("path", RECORDS)
def test_every_other_page_is_readable_for_everybody(
    demo_service: Running, open_page: OpenPage, path: str, size: str
) -> None:
    for scheme in ("light", "dark"):
        watched = open_page(f"{demo_service.root}/{path}", SIZES[size], color_scheme=scheme)
        assert watched.barriers() == []
        assert watched.is_within_width()
        watched.picture(f"{path.strip('/').replace('/', '-')}-{size}-{scheme}")
        assert [said for said in watched.problems if "status of 404" not in said] == []


@pytest.mark.parametrize("size", SIZES)
def test_long_words_need_no_scrolling_to_the_side(serve: Serve, open_page: OpenPage, size: str) -> None:
    service, word = serve(), "Donaudampfschifffahrt" * 9
    event = {
        "title": word,
        "description": word,
        "start_date": "2027-06-01",
        "end_date": "2027-06-02",
        "categories": [word, "Workshops, Weiterbildungen und Informationsveranstaltungen für Ehrenamtliche"],
        "tags": [word],
        "venue": {"venue": word, "city": word, "geo_lat": 48, "geo_lng": 8},
        "organizer": {"organizer": word},
    }
    body = json.dumps(event).encode()
    sent = Request(f"{service.api}/events", body, {"Content-Type": "application/json"})
    with urlopen(sent) as answer:
        made = json.load(answer)
    linked = [made, made["venue"], made["organizer"][0], made["categories"][0], made["tags"][0]]
    views = [f"{service.root}/events/{view}/" for view in ("month/2027-06", "week/2027-06-01", "list", "map")]
    forms = [f"{service.root}/edit/{path}" for path in ("events", f"events/{made['id']}", "categories")]
    for url in (*views, *(one["url"] for one in linked), f"{service.root}/embed/list", *forms):
        assert open_page(url, SIZES[size]).is_within_width(), url


def test_steps_and_views_keep_the_filters(demo_service: Running, open_page: OpenPage) -> None:
    watched = open_page(f"{demo_service.root}/")
    page, heading = watched.page, watched.page.get_by_role("heading", level=1)
    this_month = heading.inner_text()
    page.get_by_label("Category").select_option("concerts")
    page.get_by_role("button", name="Show").click()
    expect(page).to_have_url(re.compile("categories=concerts"))
    page.get_by_role("link", name="Next", exact=True).click()
    expect(heading).not_to_have_text(this_month)
    page.get_by_role("link", name="Previous", exact=True).click()
    expect(heading).to_have_text(this_month)
    page.get_by_role("link", name="List").click()
    expect(page).to_have_url(re.compile("list.*categories=concerts"))
    titles = page.locator(".card h2").all_inner_texts()
    assert set(titles) <= {"Summer Concert", "Open-Air Jazz"}
    page.get_by_role("link", name="Clear filters").click()
    assert len(page.locator(".card h2").all_inner_texts()) > len(titles)
    assert watched.problems == []


def test_search_finds_part_of_a_word(demo_service: Running, open_page: OpenPage) -> None:
    page = open_page(f"{demo_service.root}/events/list/").page
    page.get_by_label("Search").fill("lantern")
    page.get_by_label("Search").press("Enter")
    expect(page.locator(".card h2").first).to_have_text("Festival of Lights")
    page.get_by_label("Search").fill("no such thing at all")
    page.get_by_label("Search").press("Enter")
    expect(page.get_by_text("No events here.")).to_be_visible()


def test_subscribing_shows_addresses_with_the_filters(demo_service: Running, open_page: OpenPage) -> None:
    page = open_page(f"{demo_service.root}/?categories=concerts").page
    page.get_by_text("Subscribe").click()
    address = f"{demo_service.api}/events.ics?categories=concerts&status=publish"
    expect(page.get_by_label("Address to copy")).to_have_value(address)
    link = page.get_by_role("link", name="In your calendar program")
    expect(link).to_have_attribute("href", re.sub("^http", "webcal", address))
    with page.expect_download() as download:
        page.get_by_role("link", name="Download as a file").click()
    assert "Open-Air Jazz" in download.value.path().read_text()


def test_keys_alone_lead_to_an_event(demo_service: Running, open_page: OpenPage) -> None:
    page = open_page(f"{demo_service.root}/events/list/").page
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('.card') !== null"):
            break
    title = page.evaluate("document.activeElement.innerText")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/event/"))
    assert title in page.content()


def test_everything_works_without_javascript(demo_service: Running, open_page: OpenPage) -> None:
    watched = open_page(f"{demo_service.root}/", java_script_enabled=False)
    page = watched.page
    page.get_by_label("Category").select_option("markets")
    page.get_by_role("button", name="Show").click()
    assert set(page.locator(".grid li a span").all_inner_texts()) == {"Farmers’ Market"}
    page.get_by_role("link", name="Week").click()
    page.get_by_text("Subscribe").click()
    expect(page.get_by_label("Address to copy")).to_be_visible()
    assert watched.problems == []


def test_visitors_elsewhere_see_their_own_time_too(demo_service: Running, open_page: OpenPage) -> None:
    url = f"{demo_service.root}/events/list/?search=chess"
    here = open_page(url, timezone_id="Europe/Berlin").page
    expect(here.locator(".card").first).to_be_visible()
    expect(here.locator(".own-time")).to_have_count(0)
    there = open_page(url, timezone_id="America/New_York").page
    expect(there.locator(".own-time").first).to_contain_text(re.compile(r"1:00\D+4:00\sPM\sE[SD]T"))


def test_german_visitors_get_german_weeks(demo_service: Running, open_page: OpenPage) -> None:
    watched = open_page(f"{demo_service.root}/", locale="de-DE")
    assert watched.page.locator("html").get_attribute("lang") == "de"
    assert watched.page.locator("th").first.inner_text() == "Mo"
    expect(watched.page.get_by_role("link", name="Heute")).to_be_visible()
    watched.page.get_by_role("link", name="English").click()
    expect(watched.page.get_by_role("link", name="Today")).to_be_visible()
    assert watched.problems == []


def test_nothing_moves_while_a_page_loads(demo_service: Running, open_page: OpenPage) -> None:
    for view in VIEWS:
        page = open_page(f"{demo_service.root}/events/{view}/", timezone_id="Europe/Berlin").page
        page.wait_for_load_state("networkidle")
        moved = page.evaluate(
            """() => new Promise((done) => {
                let sum = 0;
                new PerformanceObserver((list) => { for (const one of list.getEntries()) sum += one.value; })
                    .observe({ type: "layout-shift", buffered: true });
                setTimeout(() => done(sum), 200);
            })"""
        )
        assert moved < 0.01, view


def test_a_printed_month_has_only_the_month(demo_service: Running, open_page: OpenPage) -> None:
    page = open_page(f"{demo_service.root}/").page
    page.emulate_media(media="print")
    expect(page.locator(".grid")).to_be_visible()
    for hidden in ("header.site", "footer.site", ".filters", ".views"):
        expect(page.locator(hidden).first).to_be_hidden()


@pytest.mark.parametrize("view", ["list", "month"])
def test_another_site_may_embed_a_view(
    demo_service: Running, open_page: OpenPage, other_site: str, view: str
) -> None:
    page = open_page(other_site).page
    day = date.today() + timedelta(days=1)
    address = f"{demo_service.root}/embed/{view}?date={day}&categories=markets"
    page.set_content(f'<iframe src="{address}" width="800" height="700" title="Calendar"></iframe>')
    frame = page.frame_locator("iframe")
    expect(frame.get_by_text("Farmers’ Market").first).to_be_visible()
    frame.get_by_role("link", name="Week").click()
    expect(frame.locator(".grid.week")).to_be_visible()


def test_another_site_may_not_embed_the_rest(
    demo_service: Running, open_page: OpenPage, other_site: str
) -> None:
    page = open_page(other_site).page
    page.set_content(f'<iframe src="{demo_service.root}/events/list/" title="Calendar"></iframe>')
    page.wait_for_load_state("networkidle")
    expect(page.frame_locator("iframe").locator("main")).to_have_count(0)
