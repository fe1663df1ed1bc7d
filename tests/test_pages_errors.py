"""What is wrong is told on a page to a browser, in its language, with a way on; programs get JSON."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from config import Settings
from schemas.site import Site
from service.store import unstarted_store
from tests.conftest import Api, MakeApi, Served
from tests.html_reader import HtmlReader
from tests.test_pages_records import BROWSER

GERMAN = BROWSER | {"Accept-Language": "de"}
CASES = [
    ("GET", "//nope", 404, "Page not found", "Seite nicht gefunden"),
    ("GET", "//event/nope/", 404, "Page not found", "Seite nicht gefunden"),
    ("GET", "//events/month/2027-13/", 404, "Page not found", "Seite nicht gefunden"),
    ("GET", "//events/list/?page=9", 404, "Page not found", "Seite nicht gefunden"),
    ("GET", "//?geoloc_lat=95&featured=perhaps", 400, "not right", "stimmt nicht"),
    ("GET", "//?x=%ff", 400, "not right", "stimmt nicht"),
    ("GET", "//embed/list?venue=x", 400, "not right", "stimmt nicht"),
    ("DELETE", "//event/x/", 405, "not possible", "nicht möglich"),
    ("POST", "//", 405, "not possible", "nicht möglich"),
    ("POST", "//venue/x/", 405, "not possible", "nicht möglich"),
]


@pytest.mark.parametrize(("method", "path", "status", "english", "german"), CASES)
async def test_a_browser_gets_a_page(
    api: Api, method: str, path: str, status: int, english: str, german: str
) -> None:
    for headers, told, language in ((BROWSER, english, "en"), (GERMAN, german, "de")):
        answer, _ = await api.send(method, path, headers=headers)
        assert (answer, api.headers["Content-Type"]) == (status, "text/html; charset=utf-8")
        assert (api.headers["Content-Language"], api.headers["Cache-Control"]) == (language, "no-store")
        page = HtmlReader(api.text)
        assert told in page.text
        assert (page.dangers, page.open) == ([], [])
        assert "noindex" in api.text
        assert {"/events/list/"} == {one["action"] for one in page.of("form")}
        assert "/" in {one["href"] for one in page.of("a")}
        assert "X-Request-Id" in api.headers
    status_of_program, problem = await api.send(method, path)
    assert (status_of_program, problem["data"]["status"]) == (status, status)


async def test_each_wrong_filter_is_named(api: Api) -> None:
    await api.send("GET", "//?geoloc_lat=95&featured=perhaps&categories=nope&lang=fr", headers=BROWSER)
    page = HtmlReader(api.text)
    for text in ("geoloc_lat", "Doit être un nombre de -90 à 90.", "featured", "categories"):
        assert text in page.text


async def test_programs_get_json_whatever_they_accept(make_api: MakeApi) -> None:
    api = await make_api(aliases=("/wp-json/tribe/events/v1",))
    for path in ("/nope", "//wp-json/tribe/events/v1/nope", "//health/nope", "/events?venue=x"):
        await api.send("GET", path, headers=BROWSER)
        assert api.headers["Content-Type"].startswith("application/json"), path


async def test_refused_methods_are_told_which_are_allowed(api: Api) -> None:
    await api.send("PUT", "//events/map/", headers=BROWSER)
    assert api.headers["Allow"] == "GET, HEAD, OPTIONS"
    status, body = await api.send("OPTIONS", "//events/map/", headers=BROWSER)
    assert (status, body) == (204, "")


async def test_a_crash_has_a_page_with_nothing_but_its_request_id(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def crash(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(api.store, "read", crash)
    status, _ = await api.send("GET", "//venue/x/", headers=BROWSER)
    assert (status, "secret" in api.text, "Traceback" in api.text) == (500, False, False)
    assert api.headers["X-Request-Id"] in api.text
    assert "Something went wrong" in api.text


@pytest.mark.slow
@pytest.mark.parametrize("was_ready", [False, True])
async def test_without_a_database_there_is_a_page(aiohttp_client: Any, was_ready: bool) -> None:
    """Nothing answers at this address, at the start of the service or later."""
    async with unstarted_store("mongodb://127.0.0.1:9/?serverSelectionTimeoutMS=50", "none", Site()) as store:
        store.started = was_ready
        client = await aiohttp_client(Served(Settings(), store))

        async def is_told(path: str) -> None:
            api = Api(client, store)
            status, _ = await api.send("GET", path, headers=BROWSER)
            assert (status, api.headers["Retry-After"]) == (503, "5"), path
            assert "Not available at the moment" in api.text
            assert "127.0.0.1:9" not in api.text

        # At once: after a start each of them waits for MongoDB.
        await asyncio.gather(*map(is_told, ("//", "//event/x/", "//events/map/", "//sitemap.xml")))


async def test_too_many_requests_have_a_page(make_api: MakeApi) -> None:
    api = await make_api(rate_limit=2)
    for _ in range(2):
        assert (await api.send("GET", "//nope", headers=BROWSER))[0] == 404
    assert (await api.send("GET", "//nope", headers=BROWSER))[0] == 429
    assert "Too many requests" in api.text
    assert api.headers["Retry-After"].isdigit()


async def test_a_wrong_token_has_a_page(roles: dict[str, Api]) -> None:
    stranger = Api(roles["public"].client, roles["public"].store, "kal_wrong")
    status, _ = await stranger.send("GET", "//event/x/", headers=BROWSER)
    assert (status, "Your sign-in is not valid" in stranger.text) == (401, True)
