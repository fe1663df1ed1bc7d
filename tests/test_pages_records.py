"""The pages of records: what they show of each kind, and how protected and removed ones answer."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from markupsafe import Markup

from handlers.pages import records
from schemas import KINDS, Kind
from tests.conftest import Api
from tests.html_reader import HtmlReader
from tests.samples import named

BROWSER = {"Accept": "text/html,application/xhtml+xml"}
every_kind = pytest.mark.parametrize("kind", KINDS, ids=named)


async def page_of(api: Api, path: str, **options: Any) -> tuple[int, HtmlReader]:
    """A page as a browser gets it."""
    status, _ = await api.send("GET", f"/{path}", headers=BROWSER, **options)
    return status, HtmlReader(api.text)


async def unlock(api: Api, slug: str, password: str) -> int:
    status, _ = await api.post(f"//event/{slug}/", data={"password": password}, headers=BROWSER)
    return status


@every_kind
async def test_the_address_of_a_record_leads_to_its_page(api: Api, kind: Kind) -> None:
    made = await api.made(kind.plural, **kind.example)
    path = made["url"].removeprefix(api.store.site.base_url)
    for address in (path, path.rstrip("/"), path.replace(made["slug"], made["slug"].upper())):
        status, page = await page_of(api, address)
        assert (status, api.headers["Content-Type"]) == (200, "text/html; charset=utf-8"), address
        assert page.open == []
        assert made[kind.name_field] in page.text
    shown = [value for name, value in kind.example.items() if isinstance(value, str) and name[-4:] != "date"]
    assert [value for value in shown if value != "Europe/Paris" and value not in page.text] == []
    status, _ = await page_of(api, f"/{kind.page}/another/")
    assert status == 404


@pytest.mark.parametrize(("length", "is_in_thread"), [(100, False), (50_000, True)])
async def test_long_descriptions_are_formatted_in_a_thread(
    api: Api, monkeypatch: pytest.MonkeyPatch, length: int, is_in_thread: bool
) -> None:
    event, threads = await api.event("Fair", description="<hr>" * (length // 4)), list[bool]()

    def rich_text(text: str) -> Markup:
        threads.append(threading.current_thread() is not threading.main_thread())
        return Markup("")

    monkeypatch.setattr(records, "rich_text", rich_text)
    assert (await page_of(api, f"/event/{event['slug']}/"))[0] == 200
    assert threads == [is_in_thread]


async def test_an_event_shows_all_that_is_known(api: Api) -> None:
    venue = {
        "venue": "Hall", "address": "1 Main St", "zip": "79098", "city": "Freiburg", "phone": "+49 1",
        "website": "https://hall.example.org", "geo_lat": 48, "geo_lng": 7.8,
    }  # fmt: skip
    event = await api.event(
        "Fair", description="See\n\nwww.fair.org", cost="€5", website="https://fair.example.org",
        venue=venue, organizer=[{"organizer": "Club", "email": "a@club.org"}, {"organizer": "Town"}],
        categories=["Markets"], tags=["outdoor"], image="https://img.example.org/a.png", featured=True,
    )  # fmt: skip
    status, page = await page_of(api, "/event/fair/")
    assert status == 200
    for text in ("Tue, Jun 1, 2027, 10:00 AM", "Hall", "1 Main St, 79098, Freiburg", "+49 1", "€5", "Club",
                 "Town", "Markets", "#outdoor", "Featured"):  # fmt: skip
        assert text in page.text, text
    links = {one["href"] for one in page.of("a") if "href" in one}
    assert links >= {
        "http://www.fair.org", "https://fair.example.org", "https://hall.example.org", "mailto:a@club.org",
        "/venue/hall/", "/organizer/club/", "/organizer/town/", "/events/category/markets/",
        "/events/tag/outdoor/", f"/calendar/events/v1/events/{event['id']}.ics",
        "https://www.openstreetmap.org/?mlat=48.0&mlon=7.8#map=16/48.0/7.8",
    }  # fmt: skip
    (image,) = page.of("img")
    assert (image["src"], image["alt"]) == ("https://img.example.org/a.png", "Fair")
    assert len(page.of("svg")) == 1
    await api.patch(f"/events/{event['id']}", {"show_map": False, "show_map_link": False})
    _, page = await page_of(api, "/event/fair/")
    assert page.of("svg") == []
    assert "OpenStreetMap" not in page.text


async def test_a_venue_without_a_map_may_have_a_link_to_one(api: Api) -> None:
    place = {"geo_lat": 48, "geo_lng": 8}
    for shown, linked in ((False, True), (True, False), (False, False)):
        venue = await api.made("venues", venue="Hall", **place, show_map=shown, show_map_link=linked)
        _, page = await page_of(api, f"/venue/{venue['slug']}/")
        assert (page.of("svg") != [], "OpenStreetMap" in page.text) == (shown, linked)
        assert (page.of("aside") != []) == (shown or linked)


async def test_a_mail_address_cannot_add_recipients(api: Api) -> None:
    email = "info?bcc=evil&cc=a+b@example.org"
    await api.made("organizers", organizer="Club", email=email)
    _, page = await page_of(api, "/organizer/club/")
    (link,) = [one["href"] for one in page.of("a") if one.get("href", "").startswith("mailto:")]
    assert link == "mailto:info%3Fbcc%3Devil%26cc%3Da+b@example.org"
    assert email in page.text


@pytest.mark.parametrize(
    ("path", "feed"),
    [
        ("/venue/hall/", "venue"),
        ("/organizer/club/", "organizer"),
        ("/events/category/markets/", "categories"),
        ("/events/tag/outdoor/", "tags"),
    ],
)
async def test_a_page_lists_the_events_of_its_record(api: Api, path: str, feed: str) -> None:
    links: dict[str, Any] = {"venue": {"venue": "Hall"}, "organizer": [{"organizer": "Club"}]}
    links |= {"categories": ["Markets"], "tags": ["outdoor"]}
    linked = await api.event("Linked", **links)
    again = {
        name: linked[name]["id"] if name == "venue" else [one["id"] for one in linked[name]] for name in links
    }
    await api.event("Over", start_date="2020-01-01", end_date="2020-01-02", **again)
    await api.event("Locked", password="x", **again)
    await api.event("Other")
    status, page = await page_of(api, path)
    assert status == 200
    shown = [title for title in ("Linked", "Over", "Locked", "Other") if title in page.text]
    assert shown == ["Linked"]
    record = linked[feed] if feed == "venue" else linked[feed][0]
    wanted = f"{feed}={record['id'] if feed in ('venue', 'organizer') else record['slug']}"
    links_shown = [one["href"] for one in page.of("a") if "href" in one]
    assert f"/events/past/?{wanted}" in links_shown
    assert f"webcal://127.0.0.1:8080/calendar/events/v1/events.ics?{wanted}&status=publish" in links_shown
    status, past = await page_of(api, f"/events/past/?{wanted}")
    assert (status, "Over" in past.text, "Linked" in past.text) == (200, True, False)


async def test_a_tag_of_digits_is_not_taken_for_the_id_of_another(api: Api) -> None:
    other = await api.made("tags", name="other")
    await api.event("Wrong", tags=[other["id"]])
    year = await api.made("tags", name=str(other["id"]))
    await api.event("Right", tags=[year["id"]])
    _, page = await page_of(api, f"/events/tag/{year['slug']}/")
    assert ("Right" in page.text, "Wrong" in page.text) == (True, False)


async def test_an_image_of_which_only_the_id_is_known_is_not_shown(api: Api) -> None:
    await api.event("Fair", image=5, tags=["jazz"])
    for path in ("/event/fair/", "/events/tag/jazz/", "/events/list/"):
        _, page = await page_of(api, path)
        assert ("Fair" in page.text, page.of("img")) == (True, []), path


async def test_a_category_leads_up_and_down_the_tree(api: Api) -> None:
    music = await api.made("categories", name="Music")
    jazz = await api.made("categories", name="Jazz", parent=music["id"])
    await api.made("categories", name="Unused", parent=music["id"])
    await api.event("Concert", categories=[jazz["id"]])
    _, page = await page_of(api, "/events/category/music/")
    links = [one["href"] for one in page.of("a") if "href" in one]
    assert "/events/category/jazz/" in links
    assert "/events/category/unused/" not in links
    assert "Concert" in page.text  # the events of a category are those of the ones below, too
    _, page = await page_of(api, "/events/category/jazz/")
    assert [one["href"] for one in page.of("a") if one.get("rel") == "up"] == ["/events/category/music/"]


async def test_a_changed_record_is_shown_at_once(api: Api) -> None:
    event = await api.event("Before")
    for title in ("First", "Second"):
        await api.patch(f"/events/{event['id']}", {"title": title})
        _, page = await page_of(api, "/event/before/")
        assert title in page.text
    tag = api.headers["ETag"]
    status, _ = await api.send("GET", "//event/before/", headers=BROWSER | {"If-None-Match": tag})
    assert status == 304


async def test_a_record_in_the_trash_is_gone(roles: dict[str, Api]) -> None:
    admin, public = roles["admin"], roles["public"]
    for title, status in (("Public", "publish"), ("Draft", "draft")):
        made = await admin.event(title, status=status)
        await admin.delete(f"/events/{made['id']}")
    assert [(await page_of(public, f"/event/{slug}/"))[0] for slug in ("public", "public__trashed")] == [
        410,
        410,
    ]
    assert [(await page_of(public, f"/event/{slug}/"))[0] for slug in ("draft", "draft__trashed")] == [
        404,
        404,
    ]
    assert (await page_of(admin, "/event/draft/"))[0] == 410


@pytest.mark.parametrize(
    ("status", "told"), [("draft", "draft"), ("pending", "waiting for review"), ("private", "private")]
)
async def test_who_sees_an_unpublished_record_is_told_its_status(api: Api, status: str, told: str) -> None:
    await api.event("Fair", status=status)
    await api.made("venues", venue="Hall", status=status)
    for path in ("/event/fair/", "/venue/hall/"):
        _, page = await page_of(api, path)
        assert f"This page is not public. Status: {told}" in page.text


async def test_a_protected_event_asks_for_its_password(api: Api) -> None:
    await api.event("Wedding", description="In the garden", password="tulip", cost="free")
    status, page = await page_of(api, "/event/wedding/")
    assert (status, api.headers["Cache-Control"]) == (200, "no-store")
    assert [one.get("name") for one in page.of("input")] == ["password"]
    for hidden in ("Wedding", "garden", "free", "2027", "schema.org", "og:title", "canonical"):
        assert hidden not in api.text, hidden
    assert await unlock(api, "wedding", "rose") == 403
    assert "This password is wrong" in api.text
    assert "garden" not in api.text
    assert await unlock(api, "wedding", "") == 403
    assert "This password is wrong" not in api.text
    assert await unlock(api, "wedding", "tulip") == 200
    assert (api.headers["Cache-Control"], "In the garden" in api.text) == ("no-store", True)
    assert "noindex" in api.text
    assert "schema.org" not in api.text
    _, page = await page_of(api, "/event/wedding/")
    assert "garden" not in page.text


async def test_wrong_passwords_are_limited_together_with_those_of_the_api(api: Api) -> None:
    await api.event("Wedding", password="tulip")
    for _ in range(5):
        assert await unlock(api, "wedding", "rose") == 403
        assert (await api.get("/events/by-slug/wedding", password="rose"))[0] == 403
    assert await unlock(api, "wedding", "tulip") == 429
    assert ("Too many requests" in api.text, api.headers["Retry-After"].isdigit()) == (True, True)
    assert (await page_of(api, "/event/wedding/"))[0] == 429
