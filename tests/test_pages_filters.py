"""The filters of pages: what the form shows and keeps, how each is removed, and feeds with the same."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import urlencode

import pytest

from handlers.pages.calendar import views
from tests.conftest import Api
from tests.editing import Parser
from tests.test_pages_calendar import page, titles


def form_of(html: str) -> list[tuple[str, str]]:
    """What the form above the calendar sends if nothing is changed."""
    parser = Parser()
    parser.feed(html)
    return [pair for pair in parser.forms[0].pairs if pair[1]]


def chosen(html: str) -> str:
    """The label of the category that the form shows."""
    found = re.search(r'<option value="[^"]*" selected>([^<]*)</option>', html)
    return unescape(found[1]).strip() if found else ""


def chips(html: str) -> list[tuple[str, str]]:
    """(label, address without the filter) of each filter in effect."""
    found = re.findall(r'<li><a class="button" href="([^"]*)"[^>]*>([^<]*) <', html)
    return [(unescape(label), unescape(link)) for link, label in found]


@pytest.mark.parametrize(
    ("query", "label"),
    [
        ("categories=cat-1", "Cat 1"),
        ("categories=cat-3", "cat-3"),
        ("categories=1", "Cat 1"),
        ("categories=Cat+2", "Cat 2"),
        ("categories=cat-1,cat-2", "Cat 1, Cat 2"),
        ("categories=cat-1&categories=cat-3", "Cat 1, cat-3"),
        ("categories[]=cat-2", "Cat 2"),
    ],
)
async def test_the_form_shows_and_keeps_the_categories_of_the_address(
    api: Api, monkeypatch: pytest.MonkeyPatch, query: str, label: str
) -> None:
    monkeypatch.setattr(views, "MAX_CATEGORIES", 2)
    for number in (1, 2, 3):
        await api.event(f"Event {number}", categories=[f"Cat {number}"])
    html = await page(api, f"/events/list/?{query}")
    assert chosen(html) == label
    sent = form_of(html)
    assert [name for name, _ in sent] == ["categories"], "another choice replaces it"
    assert titles(await page(api, f"/events/list/?{urlencode(sent)}")) == titles(html) != []


async def test_the_form_keeps_a_category_where_none_is_in_use(api: Api) -> None:
    await api.made("categories", name="Unused")
    html = await page(api, "/events/list/?categories=unused")
    assert (chosen(html), form_of(html)) == ("unused", [("categories", "unused")])
    assert "<select" not in await page(api, "/events/list/")


async def test_a_category_with_a_slug_of_digits_is_chosen_by_its_id(api: Api) -> None:
    other = await api.made("categories", name="Other")
    year = await api.made("categories", name=str(other["id"]))
    await api.event("Wrong", categories=[other["id"]])
    await api.event("Right", categories=[year["id"]])
    html = await page(api, f"/events/list/?categories={year['id']}")
    assert (titles(html), chosen(html)) == (["Right"], year["name"])
    assert form_of(html) == [("categories", str(year["id"]))]


async def test_each_value_of_a_filter_can_be_removed(api: Api) -> None:
    venues = [await api.made("venues", venue=name) for name in ("Hall", "Barn")]
    hall, barn = (f"venue={venue['id']}" for venue in venues)
    assert chips(await page(api, f"/events/list/?{hall}&{barn}&tags[]=&search=x")) == [
        ("Venue: Hall", f"/events/list/?{barn}&search=x"),
        ("Venue: Barn", f"/events/list/?{hall}&search=x"),
    ]


async def test_feeds_have_no_drafts_that_their_page_does_not_show(api: Api) -> None:
    await api.event("Public")
    await api.event("Draft", status="draft")
    html = await page(api, "/events/list/")
    for ending in ("rss", "atom", "ics"):
        (address,) = set(re.findall(rf'href="(http:[^"]*/events\.{ending}[^"]*)"', html))
        _, feed = await api.send("GET", "/" + unescape(address).removeprefix(api.store.site.base_url))
        assert ("Public" in feed, "Draft" in feed) == (True, False), ending
    html = await page(api, "/events/list/?status[]=draft")
    assert 'events.rss?status%5B%5D=draft"' in html
