"""What search engines and previews are told: structured data, addresses of each language, the sitemap."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from handlers.pages import sitemap
from tests.conftest import Api, MakeApi
from tests.html_reader import HtmlReader
from tests.test_pages_records import page_of

JSON_LD = re.compile(r'<script type="application/ld\+json">(.*?)</script>', re.DOTALL)


def metas(page: HtmlReader) -> dict[str, str]:
    return {one.get("property") or one.get("name", ""): one.get("content", "") for one in page.of("meta")}


async def test_an_event_is_described(api: Api) -> None:
    event = await api.event(
        "Fair </script><b>", description="<p>Tom &amp; <b>Jerry</b></p>", image="https://img.example.org/a.png",
        venue={"venue": "Hall"},
    )  # fmt: skip
    _, page = await page_of(api, f"/event/{event['slug']}/?lang=de")
    told = metas(page)
    assert told["description"] == told["og:description"] == "Tom & Jerry"
    assert told["og:title"] == event["title"]
    assert told["og:image"] == "https://img.example.org/a.png"
    assert told["twitter:card"] == "summary_large_image"
    (found,) = JSON_LD.findall(api.text)
    _, shown = await api.get(f"/events/{event['id']}")
    assert json.loads(found) == shown["json_ld"]
    assert "<" not in found


async def test_addresses_of_each_language(make_api: MakeApi) -> None:
    api = await make_api(base_url="https://example.org/kalender")
    await api.event("Fair")
    base = "https://example.org/kalender/event/fair/"
    for path, canonical in (
        ("/event/fair/", base), ("/event/FAIR?utm=x", base), ("/event/fair/?lang=fr", f"{base}?lang=fr"),
    ):  # fmt: skip
        _, page = await page_of(api, path)
        links = [(one["rel"], one.get("hreflang"), one["href"]) for one in page.of("link")]
        assert [href for rel, _, href in links if rel == "canonical"] == [canonical]
        languages = {language: href for rel, language, href in links if rel == "alternate" and language}
        expected = {language: f"{base}?lang={language}" for language in ("en", "de", "es", "fr")}
        assert languages == expected | {"x-default": base}
        assert metas(page)["og:url"] == canonical


@pytest.mark.parametrize(
    ("path", "is_indexed"),
    [
        ("/", True),
        ("/events/list/", True),
        ("/events/list/?search=fair", False),
        ("/events/month/2031-01/", False),
        ("/embed/list", False),
        ("/event/fair/", True),
        ("/event/hidden/", False),
        ("/event/draft/", False),
        ("/event/locked/", False),
        ("/events/tag/used/", True),
        ("/events/tag/unused/", False),
        ("/venue/hall/", True),
        ("/organizer/nobody/", False),
    ],
)
async def test_what_is_not_to_be_found_says_so(api: Api, path: str, is_indexed: bool) -> None:
    now = api.store.site.now().strftime("%Y-%m-%d %H:%M")
    await api.event("Fair", tags=["used"], venue={"venue": "Hall"}, start_date=now)
    await api.event("Hidden", hide_from_listings=True)
    await api.event("Draft", status="draft")
    await api.event("Locked", password="x")
    await api.made("tags", name="unused")
    await api.made("organizers", organizer="Nobody")
    status, page = await page_of(api, path)
    assert (status, metas(page).get("robots")) == (200, None if is_indexed else "noindex")


async def test_robots_are_told_where_the_sitemap_is(make_api: MakeApi) -> None:
    api = await make_api(base_url="https://example.org/kalender")
    status, text = await api.get("//robots.txt")
    assert status == 200
    assert text.splitlines() == [
        "User-agent: *", "Disallow: /kalender/edit", "",
        "Sitemap: https://example.org/kalender/sitemap.xml",
    ]  # fmt: skip


async def addresses(api: Api, path: str) -> list[str]:
    status, text = await api.get(f"/{path}")
    assert (status, api.headers["Content-Type"]) == (200, "application/xml; charset=utf-8")
    return re.findall("<loc>(.*?)</loc>", text)


async def test_the_sitemap_has_each_public_page_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemap, "MAX_URLS", 2)
    base = api.store.site.base_url
    long_ago: dict[str, Any] = {"start_date": "2020-01-01", "end_date": "2020-01-01"}
    for title in ("A", "B", "C"):
        await api.event(title, tags=["used"])
    await api.event("Hidden", hide_from_listings=True)
    await api.event("Locked", password="x", tags=["secret"])
    await api.event("Long ago", **long_ago)
    await api.made("tags", name="unused")
    parts = await addresses(api, "/sitemap.xml")
    shown = [one for part in parts for one in await addresses(api, part.removeprefix(base))]
    assert sorted(shown) == sorted(
        f"{base}{path}"
        for path in ("/", "/events/list/", "/events/map/", "/event/a/", "/event/b/", "/event/c/",
                     "/events/tag/used/")
    )  # fmt: skip
    assert len([part for part in parts if "events" in part]) == 2
    for path in ("//sitemap-events-9.xml", "//sitemap-events-0.xml", "//sitemap-nope-1.xml"):
        assert (await api.get(path))[0] == 404
