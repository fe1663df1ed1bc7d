"""Pages of other sites: what they may read, and which of their writes are refused."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from config import Settings
from schemas.caller import Role
from service.http.cross_site import CrossSite
from tests.conftest import Api, MakeApi

SITE, OTHER = "https://www.example.org", "https://evil.example"
WRITES = [
    ("POST", "/tags"),
    ("PUT", "/tags/1"),
    ("PATCH", "/tags/1"),
    ("DELETE", "/tags/1"),
    ("POST", "/events"),
    ("DELETE", "/events/by-slug/x"),
]


async def written(api: Api, headers: dict[str, str], token: str = "") -> int:
    """The status of a form that a page sends without asking first."""
    sent = {"Authorization": f"Bearer {token}"} if token else {}
    status, body = await api.send("POST", "/venues", data={"venue": "Hall"}, headers=sent | headers)
    assert status == 201 or body["code"] == "rest_forbidden", body
    return status


@pytest.mark.parametrize(
    ("allowed", "origin", "answered"),
    [
        (("*",), SITE, "*"),
        ((SITE,), SITE, SITE),
        ((SITE,), SITE.upper(), SITE),
        ((SITE,), OTHER, None),
        ((SITE,), "", None),
        ((SITE,), "null", None),
        ((), SITE, None),
    ],
)
async def test_pages_read_where_the_settings_say_so(
    make_api: MakeApi, allowed: Any, origin: str, answered: str | None
) -> None:
    api = await make_api(cors_origins=allowed)
    for method in ("GET", "HEAD", "OPTIONS"):
        await api.send(method, "/events", headers={"Origin": origin} if origin else {})
        assert api.headers.get("Access-Control-Allow-Origin") == answered
        assert "Access-Control-Allow-Credentials" not in api.headers
        assert "Origin" in api.headers["Vary"]


async def preflight(api: Api, origin: str, method: str, path: str = "/events/1") -> dict[str, str]:
    asked = {"Origin": origin, "Access-Control-Request-Method": method}
    asked["Access-Control-Request-Headers"] = "authorization,content-type"
    status, _ = await api.send("OPTIONS", path, headers=asked)
    assert (status, "Allow" in api.headers) == (204, True)
    start = "Access-Control-Allow-"
    return {name.removeprefix(start): api.headers[name] for name in api.headers if name.startswith(start)}


@pytest.mark.parametrize("mode", ["open", "token"])
async def test_pages_of_named_origins_may_ask_to_write(make_api: MakeApi, mode: str) -> None:
    api = await make_api(cors_origins=(SITE,), auth=mode)
    allowed = await preflight(api, SITE, "PATCH")
    assert allowed["Origin"] == SITE
    assert set(allowed["Methods"].split(", ")) >= {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}
    conditions = {"if-match", "if-none-match", "if-unmodified-since", "idempotency-key"}
    assert conditions | {"authorization", "content-type", "x-event-password"} == set(
        allowed["Headers"].lower().split(", ")
    )
    assert api.headers["Access-Control-Max-Age"] == "86400"
    assert "PATCH" not in (await preflight(api, SITE, "POST", "/events"))["Methods"]
    assert await preflight(api, OTHER, "PATCH") == {}


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_everybody_may_ask_to_read_and_only_named_origins_to_write(
    make_api: MakeApi, method: str
) -> None:
    api = await make_api(auth="token", cors_origins=("*", OTHER))
    allowed = await preflight(api, SITE, "GET")
    assert (allowed["Origin"], allowed["Methods"]) == ("*", "GET, HEAD, OPTIONS")
    assert "content-type" not in allowed["Headers"].lower()
    # Browsers take POST for allowed if the origin is: so the origin must not be.
    assert await preflight(api, SITE, method) == {}
    assert (await preflight(api, OTHER, method))["Origin"] == OTHER


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": OTHER},
        {"Origin": "null"},
        {"Origin": "http://localhost:3000", "Host": "localhost:8080"},
        {"Origin": "http://localhost.evil.example"},
        {"Origin": "file://"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": OTHER, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
        # DNS rebinding: the page's own name leads to this machine.
        {"Origin": "http://evil.example:8080", "Host": "evil.example:8080"},
        {"Origin": "http://evil.example:8080", "Host": "evil.example:8080", "Sec-Fetch-Site": "same-origin"},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:8080"},
        {"Host": "localhost@evil.example"},
        {"Host": "192.0.2.1"},
        {"Host": ""},
    ],
    ids=str,
)
async def test_a_page_of_another_site_writes_nothing_in_open_mode(
    make_api: MakeApi, headers: dict[str, str]
) -> None:
    api = await make_api(cors_origins=("*", SITE))
    assert await written(api, headers) == 403
    assert "Refused" in api.text
    assert "Access-Control-Allow-Origin" not in api.headers
    assert await api.ids("venues") == []
    assert (await api.send("GET", "/venues", headers=headers))[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://localhost:8080", "Host": "localhost:8080", "Sec-Fetch-Site": "same-origin"},
        {"Origin": "http://127.0.0.1:8080", "Host": "127.0.0.1:8080"},
        {"Origin": "http://[::1]:8080", "Host": "[::1]:8080"},
        {"Origin": "https://localhost:8443", "Host": "localhost:8443"},
        {"Origin": "http://LocalHost:8080", "Host": "LOCALHOST:8080"},
        {"Host": "kalends.localhost:8080"},
        {"Host": "localhost."},
        {"Host": "127.0.0.2"},
        {"Sec-Fetch-Site": "none"},
    ],
    ids=str,
)
async def test_own_pages_and_programs_write_in_open_mode(api: Api, headers: dict[str, str]) -> None:
    assert await written(api, headers) == 201


@pytest.mark.parametrize(("method", "path"), WRITES)
async def test_every_way_of_writing_is_guarded(api: Api, method: str, path: str) -> None:
    status, problem = await api.send(method, path, {}, headers={"Origin": OTHER})
    assert (status, problem["code"]) == (403, "rest_forbidden")
    assert OTHER in problem["message"]
    assert (await api.send(method, "/nowhere", {}, headers={"Origin": OTHER}))[0] == 404


async def test_the_base_url_is_a_name_of_the_service(make_api: MakeApi) -> None:
    base = "https://events.example.org/calendar"
    api = await make_api(base_url=base)
    assert await written(api, {"Host": "events.example.org", "Origin": "https://events.example.org"}) == 201
    assert await written(api, {"Host": "localhost", "Origin": "https://events.example.org"}) == 201
    assert await written(api, {"Host": "other.example.org"}) == 403


@pytest.mark.parametrize(
    ("host", "is_own"),
    [("192.0.2.1", True), ("[2001:db8::1]:8080", True), ("localhost", True), ("kalends.lan", False)],
)
async def test_a_service_on_the_network_is_reached_by_its_addresses(
    make_api: MakeApi, host: str, is_own: bool
) -> None:
    api = await make_api(host="0.0.0.0", auth="open")
    assert await written(api, {"Host": host}) == (201 if is_own else 403)


async def test_a_write_without_a_token_is_told_to_send_one_in_token_mode(make_api: MakeApi) -> None:
    api = await make_api(auth="token", cors_origins=(SITE,))
    for headers in ({"Origin": SITE}, {"Origin": OTHER}, {"Host": "evil.example"}):
        assert await written(api, headers) == 401


async def test_a_token_proves_that_the_page_was_given_it(make_api: MakeApi) -> None:
    for mode in ("open", "token"):
        api = await make_api(auth=mode, cors_origins=(SITE,))
        token = await api.store.tokens.create(mode, Role.EDITOR)
        for origin in (SITE, OTHER, "null", "chrome-extension://abc"):
            assert await written(api, {"Origin": origin, "Sec-Fetch-Site": "cross-site"}, token) == 201
            shown = api.headers.get("Access-Control-Allow-Origin")
            assert shown == (SITE if origin == SITE else None)
        assert await written(api, {"Origin": SITE}, "wrong") == 401


@pytest.mark.parametrize("mode", ["open", "token"])
async def test_credentials_that_a_browser_remembers_do_not_count_for_other_sites(
    make_api: MakeApi, mode: str
) -> None:
    api = await make_api(auth=mode, cors_origins=(SITE,))
    token = await api.store.tokens.create("me", Role.EDITOR)
    basic = {"Authorization": "Basic " + b64encode(f"me:{token}".encode()).decode()}
    assert await written(api, basic | {"Origin": OTHER}) == 403
    assert await written(api, basic | {"Sec-Fetch-Site": "cross-site"}) == 403
    assert await written(api, basic | {"Origin": SITE, "Sec-Fetch-Site": "cross-site"}) == 201
    assert await written(api, basic) == 201


def test_the_machine_is_known_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "Machine")
    assert CrossSite(Settings(host="0.0.0.0", auth="open"))._is_own_host("machine:8080")
    assert not CrossSite(Settings())._is_own_host("machine:8080")
