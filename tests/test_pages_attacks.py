"""Whatever is stored in a record or sent in an address, no page runs it, loads it or is broken by it."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from schemas import EVENT, KINDS
from tests.conftest import Api
from tests.html_reader import HtmlReader
from tests.test_pages_records import BROWSER
from tests.test_sanitizing import ATTACKS

KEPT = ("slug", "status", "timezone", "type", "currency_code", "currency_position")
"""Texts that only take a few values, or make up the address of a page."""
VIEWS = (
    *("/", "/events/month/2027-06/", "/events/week/2027-06-01/", "/events/day/2027-06-01/", "/events/list/"),
    *("/events/past/2028-01-01/", "/events/map/", "/embed/list", "/embed/month?date=2027-06-01"),
)
LINKS = {
    "venue": {
        **dict.fromkeys(("venue", "address", "city", "country", "zip", "phone", "description"), "x"),
        **{"website": "https://a.org", "image": "https://a.org/i", "geo_lat": 1, "geo_lng": 2},
    },
    "organizer": [{"organizer": "x", "email": "a@a.org", "website": "https://a.org", "description": "x"}],
    "categories": ["x"],
    "tags": ["x"],
}


def attacked(value: Any, attack: str, name: str = "") -> Any:
    """A stored value with the attack in every text, as if nothing had cleaned it."""
    if isinstance(value, dict):
        return {key: attacked(one, attack, key) for key, one in value.items()}
    if isinstance(value, list):
        return [attacked(one, attack, name) for one in value]
    if not isinstance(value, str) or name in KEPT:
        return value
    return f"https://a.org/{attack}" if value.startswith("https:") else attack


async def paths_of_attacked(api: Api, attack: str) -> list[str]:
    """Makes a record of each kind, all linked to one event, and changes their stored texts."""
    texts = {
        "description": "x",
        "excerpt": "x",
        "cost": "x",
        "website": "https://a.org",
        "image": "https://a.org/i",
    }
    await api.event("x", **texts, **LINKS)
    paths = list(VIEWS)
    for kind in KINDS:
        records = api.store.database[kind.plural]
        async for stored in records.find({}, {"tok": 0, "text": 0, "sort": 0, "key": 0, "import_key": 0}):
            await records.update_one({"_id": stored["_id"]}, {"$set": attacked(stored, attack)})
            paths.append(f"/{kind.page}/{stored['slug']}/")
    assert len(paths) == len(VIEWS) + len(KINDS)
    return paths


@pytest.mark.parametrize("attack", ATTACKS)
async def test_attacks_in_stored_texts(api: Api, attack: str) -> None:
    for path in await paths_of_attacked(api, attack):
        status, _ = await api.send("GET", f"/{path}", headers=BROWSER)
        page = HtmlReader(api.text)
        assert status == 200, path
        assert (page.dangers, page.open) == ([], []), path
        assert "unsafe-inline" not in api.headers["Content-Security-Policy"]
        assert len(page.of("main")) == len(page.of("html")) == 1


async def test_attacks_are_really_shown(api: Api) -> None:
    """The test above looks at pages that have the text: an event page shows it as text many times."""
    paths = await paths_of_attacked(api, ATTACKS[0])
    await api.send("GET", f"/{paths[len(VIEWS) + KINDS.index(EVENT)]}", headers=BROWSER)
    assert api.text.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 10
    assert "\\u003cscript\\u003ealert(1)" in api.text


@pytest.mark.parametrize("attack", ATTACKS)
async def test_attacks_in_addresses(api: Api, attack: str) -> None:
    await api.event("x")
    sent = quote(attack, safe="")
    for path in (
        *(f"/nope/{sent}", f"/event/{sent}/", f"/?search={sent}", f"/?categories={sent}", f"/?lang={sent}"),
        *(f"/events/list/?page={sent}", f"/?{sent}=x", f"/?venue={sent}", f"/event/x/?lang=de&{sent}={sent}"),
        *(f"/events/month/{sent}/", f"/embed/list?date={sent}", f"/?geoloc_lat={sent}", "/%2Fevil.example/"),
    ):
        await api.send("GET", f"/{path}", headers=BROWSER)
        page = HtmlReader(api.text)
        assert api.headers["Content-Type"].startswith("text/html"), path
        assert (page.dangers, page.open) == ([], []), path
        assert not [one for one in page.of("a") if one.get("href", "").startswith("//")], path
