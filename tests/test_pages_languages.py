"""The language of pages: links keep the one that was chosen, and lead to the same page in another."""

from __future__ import annotations

import re
from html import unescape

import pytest

from tests.conftest import Api
from tests.editing import Editor
from tests.html_reader import HtmlReader
from tests.test_pages_calendar import page


def links(html: str) -> list[str]:
    return [one["href"] for one in HtmlReader(html).of("a") if "href" in one]


def in_footer(html: str, language: str) -> str:
    found = re.search(rf'<a href="([^"]*)" hreflang="{language}"', html)
    assert found
    return unescape(found[1])


def in_head(html: str, language: str) -> str:
    found = re.search(rf'<link rel="alternate" hreflang="{language}" href="[^"]*?//[^/]*([^"]*)"', html)
    assert found
    return unescape(found[1])


def title(html: str) -> str:
    found = re.search("<h1>(.*?)</h1>", html)
    assert found
    return unescape(found[1]).replace("\u2009", " ")


async def test_links_keep_the_language(api: Api) -> None:
    await api.event("Over", start_date="2020-01-01", end_date="2020-01-02")
    for path in ("events/list/", "event/over/", "edit/events"):
        html = await page(api, f"/{path}?lang=de")
        assert {"/?lang=de", "/edit?lang=de"} <= set(links(html)), path
        assert not {"/", "/edit"} & set(links(html)), path
        html = await page(api, f"/{path}")
        assert {"/", "/edit"} <= set(links(html)), path
    assert links(await page(api, "/event/over/?lang=de")).count("/?lang=de") == 2


async def test_redirects_of_the_editor_keep_the_language(roles: dict[str, Api]) -> None:
    editor = Editor(roles["public"], roles["editor"].token)
    assert (await editor.get("/edit?lang=de")).location == "/edit/events?lang=de"
    assert (await editor.get("/edit")).location == "/edit/events"
    assert (await editor.post("/edit/sign-out?lang=de")).location == "/?lang=de"


async def test_other_languages_have_the_same_page_of_a_list(api: Api) -> None:
    for number in range(21):
        await api.event(f"Event {number:02}", tags=["x"])
    html = await page(api, "/events/list/?tags=x&page=2")
    assert in_footer(html, "de") == "/events/list/?tags=x&lang=de&page=2"
    assert "Event 20" in await page(api, in_footer(html, "de"))
    html = await page(api, "/events/list/?tags=x")
    assert in_footer(html, "de") == "/events/list/?tags=x&lang=de"


async def test_other_languages_have_nearly_the_same_week(api: Api) -> None:
    for day in ("2027-06-06", "2027-06-09", "2027-06-12"):
        html = await page(api, f"/events/week/{day}/")
        assert title(html) == "Sun, Jun 6 – Sat, Jun 12, 2027"
        assert f"/events/list/{day}/" in links(html), "other views are at the day of the address"
        for find in (in_footer, in_head):
            german = await page(api, find(html, "de"))
            assert title(german) == "Mo., 7. – So., 13. Juni 2027"
            assert title(await page(api, find(german, "en"))) == title(html)


async def test_weeks_at_the_ends_of_the_calendar_have_other_languages(api: Api) -> None:
    for day in ("1900-01-01", "2199-12-31"):
        await page(api, in_footer(await page(api, f"/events/week/{day}/"), "de"))


@pytest.mark.parametrize(
    ("language", "shown"), [("en", "Free"), ("de", "Kostenlos"), ("es", "Gratis"), ("fr", "Gratuit")]
)
async def test_free_events_are_free_in_every_language(api: Api, language: str, shown: str) -> None:
    await api.event("Fair", cost="free")
    await api.event("Market", cost="Free entry")
    for path in ("event/fair/", "events/list/"):
        html = await page(api, f"/{path}?lang={language}")
        assert f">{shown}</" in html, path
    assert "Free entry" in html
