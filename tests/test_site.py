"""Where the API is mounted, what every answer carries, and how a request is refused."""

from __future__ import annotations

import pytest

from tests.conftest import Api, MakeApi


async def test_every_route_takes_a_trailing_slash_and_head(api: Api) -> None:
    event = await api.event()
    for path in ("/", "/doc", "/events", f"/events/{event['id']}", f"/events/by-slug/{event['slug']}"):
        bare = path.rstrip("/")
        assert (await api.get(bare))[0] == (await api.get(bare + "/"))[0] == 200
        status, body = await api.send("HEAD", bare)
        assert (status, body) == (200, None) or (status, body) == (200, "")


async def test_options_tell_the_methods(api: Api) -> None:
    for path, allowed in (("/events", "GET, HEAD, OPTIONS, POST"), ("/doc", "GET, HEAD, OPTIONS")):
        assert (await api.send("OPTIONS", path))[0] == 204
        assert api.headers["Allow"] == allowed
        status, problem = await api.send("PUT", path, {})
        assert (status, problem["code"], api.headers["Allow"]) == (405, "rest_method_not_allowed", allowed)


async def test_links_come_from_the_settings_and_never_from_the_host_header(make_api: MakeApi) -> None:
    api = await make_api(base_url="https://events.example.org", api_root="/wp-json")
    assert api.store.site.namespace == "/wp-json/calendar/events/v1"
    for number in range(2):
        await api.event(f"Event {number}")
    _, page = await api.send("GET", "/events?per_page=1", headers={"Host": "evil.example.com"})
    assert page["next_rest_url"].startswith("https://events.example.org/wp-json/calendar/events/v1/events?")
    assert page["events"][0]["global_id"].startswith("events.example.org?id=")
    assert "evil" not in str(page)


async def test_aliases_serve_clients_that_have_a_path_built_in(make_api: MakeApi) -> None:
    api = await make_api(aliases=("/wp-json/tribe/events/v1",))
    event = await api.event()
    status, same = await api.get(f"//wp-json/tribe/events/v1/events/{event['id']}")
    assert (status, same["id"]) == (200, event["id"])


async def test_links_keep_every_filter_percent_encoded(api: Api) -> None:
    for number in range(3):
        await api.event(f"Ünïcode & more {number}", tags=["a b"])
    _, page = await api.send("GET", "/events?per_page=1&search=n%C3%AFc+%26&tags[]=a+b&strict_dates=1&page=2")
    assert page["next_rest_url"].endswith(
        "/events?per_page=1&search=n%C3%AFc%20%26&tags%5B%5D=a%20b&strict_dates=1&page=3"
    )
    assert page["previous_rest_url"].endswith("&page=1")


async def test_every_answer_carries_its_headers(api: Api) -> None:
    for path in ("/events", "/nope", "/events/4711"):
        await api.get(path)
        assert api.headers["X-Content-Type-Options"] == "nosniff"
        assert api.headers["Content-Type"] == "application/json; charset=utf-8"
        assert len(api.headers["X-Request-Id"]) == 16
        assert api.headers["Server"] == "kalends"


async def test_unknown_routes_answer_like_everything_else(api: Api) -> None:
    for path in ("/nope", "/events/abc", "//nope", "/categories/by-slug/x"):
        status, problem = await api.get(path)
        assert (status, problem["code"], problem["data"]["status"]) == (404, "rest_no_route", 404)


async def test_a_crash_tells_nothing_but_its_request_id(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def crash(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(api.store, "page", crash)
    status, problem = await api.get("/events")
    assert (status, problem["code"]) == (500, "rest_internal_error")
    assert "secret" not in str(problem)
    assert api.headers["X-Request-Id"] in problem["message"]
    assert api.headers["X-Request-Id"] in caplog.text


async def test_pages_and_health(api: Api) -> None:
    await api.event("Summer Fair")
    for path in ("//", "//event/summer-fair/"):
        status, _ = await api.get(path)
        assert (status, api.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert await api.get("//health/live") == (200, {"status": "live"})


async def test_one_body_for_json_and_forms(api: Api) -> None:
    form = (
        "title=Form&start_date=2027-06-01&end_date=2027-06-02&venue[venue]=Hall&venue[city]=Oslo"
        "&organizer[0][organizer]=Bob&organizer[1][organizer]=Eve&tags[]=a&tags[]=b&featured=on"
    )
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    status, event = await api.post("/events", data=form, headers=headers)
    assert status == 201
    assert (event["venue"]["city"], event["featured"]) == ("Oslo", True)
    assert [one["organizer"] for one in event["organizer"]] == ["Bob", "Eve"]
    assert [tag["name"] for tag in event["tags"]] == ["a", "b"]
