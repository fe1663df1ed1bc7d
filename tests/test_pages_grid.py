"""Months and weeks: which events are on which days, and that each can be reached on narrow screens."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from handlers.pages.calendar import events, views
from tests.conftest import Api, MakeApi
from tests.test_pages_calendar import days, page, titles

CELL = re.compile(r'<td class="([^"]*)">(.*?)</td>', re.DOTALL)


def outside(html: str) -> list[str]:
    """The titles on days of other months."""
    return [title for kind, cell in CELL.findall(html) if "outside" in kind for title in titles(cell)]


def first_seen(html: str) -> list[str]:
    """The titles that can be reached on the first day that narrow screens do not hide."""
    hidden = ("outside", "over", "empty")
    cells = [cell for kind, cell in CELL.findall(html) if not any(word in kind for word in hidden)]
    return titles(cells[0])


async def test_what_began_on_a_hidden_day_can_be_reached_on_the_first_that_is_shown(api: Api) -> None:
    await api.event("Long", start_date="2027-05-30 10:00:00", end_date="2027-06-03 11:00:00")
    html = await page(api, "/events/month/2027-06/")
    assert first_seen(html) == ["Long"]
    assert [day for day, cell in days(html).items() if titles(cell)] == [1]


@pytest.mark.parametrize("view", ["month", "week"])
async def test_what_began_before_today_can_be_reached_today(api: Api, view: str) -> None:
    today = api.store.site.now().date()
    times = {"start_date": str(today - timedelta(40)), "end_date": f"{today + timedelta(2)} 12:00:00"}
    await api.event("Long", **times)
    assert first_seen(await page(api, f"/events/{view}/")) == ["Long"]


async def test_days_of_other_months_have_all_their_events(api: Api) -> None:
    for day in ("2027-05-29", "2027-05-30", "2027-07-03", "2027-07-04"):
        await api.event(day, start_date=f"{day} 10:00:00", end_date=f"{day} 11:00:00")
    html = await page(api, "/events/month/2027-06/")
    assert outside(html) == ["2027-05-30", "2027-07-03"], "the weeks that the page shows"
    assert "No events here." in html, "there are none in June"
    assert 'content="noindex"' in html
    german = await page(api, "/events/month/2027-06/?lang=de")
    assert outside(german) == ["2027-07-03", "2027-07-04"]


async def test_days_of_other_months_have_numbers_if_there_are_very_many_events(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in ("2027-05-30", "2027-05-30", "2027-07-03"):
        await api.event(start_date=f"{day} 10:00:00", end_date=f"{day} 11:00:00")
    for module in (views, events):
        monkeypatch.setattr(module, "MAX_IN_GRID", 2)
    html = await page(api, "/events/month/2027-06/")
    assert re.findall(r"Events: (\d+)", html) == ["2", "1"]
    assert "No events here." in html


@pytest.mark.parametrize(
    ("site", "zone", "time"),
    [
        ("Pacific/Kiritimati", "Pacific/Pago_Pago", "23:00:00"),
        ("Pacific/Pago_Pago", "Pacific/Kiritimati", "00:30:00"),
    ],
)
async def test_zones_that_are_more_than_a_day_apart(
    make_api: MakeApi, site: str, zone: str, time: str
) -> None:
    api = await make_api(timezone=site)
    for day in ("2027-07-31", "2027-08-01"):  # the end and the beginning of a week, too
        await api.event(day, start_date=f"{day} {time}", end_date=f"{day} {time}", timezone=zone)
        assert titles(await page(api, f"/events/day/{day}/")) == [day]
        cells = days(await page(api, f"/events/month/{day[:7]}/"))
        assert [number for number, cell in cells.items() if day in titles(cell)] == [int(day[8:])]
