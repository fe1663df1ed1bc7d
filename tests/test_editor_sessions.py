"""Sessions of the editor: sign in and out, the cookie, which the API ignores, forged forms, redirects."""

from __future__ import annotations

from base64 import b64encode
from http.cookies import SimpleCookie
from urllib.parse import quote

import pytest

from handlers.editor.cookie import COOKIE
from schemas.caller import Role
from tests.conftest import Api, MakeApi
from tests.editing import Editor

Roles = dict[str, Api]
OTHER = "https://evil.example"


async def sign_in(api: Api, token: str, next: str = "") -> Editor:
    editor = Editor(api)
    page = await editor.post(f"/edit/sign-in{next and '?next=' + next}", [("token", token)])
    assert page.status == 303, page.text
    editor.token = SimpleCookie(page.headers["Set-Cookie"])[COOKIE].value
    return editor


async def test_the_cookie_is_kept_from_scripts_and_other_sites(roles: Roles) -> None:
    page = await Editor(roles["public"]).post("/edit/sign-in", [("token", roles["editor"].token)])
    assert (page.status, page.location) == (303, "/edit")
    cookie = SimpleCookie(page.headers["Set-Cookie"])[COOKIE]
    assert cookie.value == roles["editor"].token
    assert cookie["httponly"]
    assert (cookie["samesite"], cookie["path"], cookie["secure"]) == ("Strict", "/", "")
    assert 0 < int(cookie["max-age"]) <= 7 * 86400


async def test_the_cookie_follows_the_address_of_the_service(make_api: MakeApi) -> None:
    api = await make_api(auth="token", base_url="https://example.org/calendar")
    token = await api.store.tokens.create("x", Role.EDITOR)
    page = await Editor(api).post("/edit/sign-in?next=/edit/venues", [("token", token)])
    cookie = SimpleCookie(page.headers["Set-Cookie"])[COOKIE]
    assert (cookie["path"], cookie["secure"]) == ("/calendar", True)
    assert page.location == "/calendar/edit/venues"


@pytest.mark.parametrize("token", ["", "kal_wrong", "a b", "x" * 300, "kal_\r\nSet-Cookie: a=b", "é"])
async def test_a_wrong_token_is_told_beside_the_field(roles: Roles, token: str) -> None:
    page = await Editor(roles["public"]).post("/edit/sign-in", [("token", token)])
    assert page.status == 401
    assert "Set-Cookie" not in page.headers
    assert 'aria-invalid="true"' in page.text
    assert "This token is not valid" in page.text


async def test_wrong_tokens_are_limited(roles: Roles) -> None:
    editor = Editor(roles["public"])
    statuses = [(await editor.post("/edit/sign-in", [("token", "kal_no")])).status for _ in range(11)]
    assert statuses == [401] * 10 + [429]
    assert (await editor.get("/edit/events")).status == 303


async def test_signing_out_ends_the_session(roles: Roles) -> None:
    editor = await sign_in(roles["public"], roles["editor"].token)
    assert (await editor.get("/edit/events")).status == 200
    page = await editor.post("/edit/sign-out")
    assert (page.status, page.location) == (303, "/")
    cookie = SimpleCookie(page.headers["Set-Cookie"])[COOKIE]
    assert (cookie.value, cookie["max-age"], cookie["path"]) == ("", "0", "/")


async def test_a_cookie_that_is_not_valid_any_more_is_cleared(roles: Roles) -> None:
    editor = Editor(roles["public"], "kal_revoked")
    page = await editor.get("/edit/events")
    assert page.status == 303
    assert page.location.startswith("/edit/sign-in?next=")
    assert SimpleCookie(page.headers["Set-Cookie"])[COOKIE]["max-age"] == "0"
    assert (await editor.get("/")).status == 200  # the public calendar goes on
    page = await editor.post("/edit/sign-in", [("token", roles["editor"].token)])
    assert SimpleCookie(page.headers["Set-Cookie"])[COOKIE].value == roles["editor"].token


async def test_the_api_ignores_the_cookie(roles: Roles) -> None:
    api, headers = roles["public"], {"Cookie": f"{COOKIE}={roles['admin'].token}"}
    draft = await roles["admin"].event("Draft", status="draft")
    for path in ("/events", f"/events/{draft['id']}", "/events?status=draft", "/events.ics", "/changes"):
        asked = await api.send("GET", path, headers=headers)
        asked_text = api.text
        assert (asked[0], asked_text.partition("request")[0]) == (
            (await api.send("GET", path))[0],
            api.text.partition("request")[0],
        ), path
        assert "Draft" not in asked_text
    assert (await api.post("/tags", {"name": "x"}, headers=headers))[0] == 401
    assert (await api.delete(f"/events/{draft['id']}", headers=headers))[0] == 401


async def test_the_api_under_another_path_ignores_the_cookie_too(make_api: MakeApi) -> None:
    api = await make_api(auth="token", aliases=("/wp-json/tribe/events/v1",), api_root="/api")
    token = await api.store.tokens.create("x", Role.ADMIN)
    for root in ("/wp-json/tribe/events/v1", "/api/calendar/events/v1"):
        for end in ("", "/"):
            headers = {"Cookie": f"{COOKIE}={token}"}
            status, _ = await api.post(f"/{root}/tags{end}", {"name": "x"}, headers=headers)
            assert status == 401, root
    assert (await Editor(api, token).get("/edit/tags")).status == 200


async def test_a_header_wins_over_the_cookie(roles: Roles) -> None:
    editor = Editor(roles["public"], roles["admin"].token)
    page = await editor.send("GET", "/edit/review", Authorization=f"Bearer {roles['viewer'].token}")
    assert page.status == 403
    assert (await editor.send("GET", "/edit/review", Authorization="Bearer kal_no")).status == 401


async def test_open_mode_needs_no_session(api: Api) -> None:
    editor = Editor(api, "kal_left_over")
    page = await editor.get("/edit/sign-in")
    assert (page.status, page.location) == (303, "/edit")
    page = await editor.get("/edit/events")
    assert page.status == 200
    assert "Set-Cookie" not in page.headers
    assert "sign-out" not in page.text


@pytest.mark.parametrize(
    "next",
    [
        *("https://evil.example", "//evil.example", "/\\evil.example", "/edit/..//evil.example@", "/edit\\x"),
        *("javascript:alert(1)", "/editx", "/calendar", "/edit/\r\nSet-Cookie:a=b", "/edit?a=\t", ""),
    ],
)
async def test_nobody_is_sent_to_another_site(roles: Roles, next: str) -> None:
    editor = await sign_in(roles["public"], roles["editor"].token)
    page = await editor.get(f"/edit/sign-in?next={quote(next, safe='')}")
    assert (page.status, page.location) == (303, "/edit")


@pytest.mark.parametrize("path", ["/edit/venues/new", "/edit/events?search=caf%C3%A9&status=trash", "/edit"])
async def test_a_visitor_gets_where_they_wanted_after_signing_in(roles: Roles, path: str) -> None:
    stranger = Editor(roles["public"])
    asked = await stranger.get(path)
    assert asked.status == 303
    form = (await stranger.get(asked.location)).form("/edit/sign-in")
    page = await stranger.submit(form, token=roles["editor"].token)
    assert (page.status, page.location) == (303, path)


FORGED = [
    {"Origin": OTHER},
    {"Origin": "null"},
    {"Sec_Fetch_Site": "cross-site"},
    {"Sec_Fetch_Site": "same-site"},
    {"Origin": OTHER, "Sec_Fetch_Site": "cross-site"},
]
FORMS = ["/edit/events/new", "/edit/events/{id}", "/edit/events/{id}/delete", "/edit/events/{id}/restore"]
FORMS += ["/edit/events/{id}/undo", "/edit/sign-in", "/edit/sign-out"]


@pytest.mark.parametrize("mode", ["token", "open"])
@pytest.mark.parametrize("headers", FORGED, ids=str)
async def test_forms_of_other_sites_are_refused(
    make_api: MakeApi, headers: dict[str, str], mode: str
) -> None:
    api = await make_api(auth=mode, cors_origins=(OTHER,))
    token = await api.store.tokens.create("x", Role.ADMIN)
    event = await Api(api.client, api.store, token).event()
    editor = Editor(api, token)
    for path in FORMS:
        page = await editor.send("POST", path.format(id=event["id"]), [("title", "Planted")], **headers)
        assert page.status == 403, path
        assert "Set-Cookie" not in page.headers
    assert (await api.get("/events"))[1]["total"] == 1


@pytest.mark.parametrize(
    "headers",
    [{}, {"Sec_Fetch_Site": "same-origin"}, {"Sec_Fetch_Site": "none"}, {"Origin": "http://{host}"}],
    ids=str,
)
async def test_own_forms_are_accepted(roles: Roles, headers: dict[str, str]) -> None:
    editor = Editor(roles["public"], roles["editor"].token)
    server = roles["public"].client.server
    sent = {name: value.format(host=f"{server.host}:{server.port}") for name, value in headers.items()}
    page = await editor.send("POST", "/edit/tags/new", [("name", "Own")], **sent)
    assert page.status == 303


async def test_remembered_basic_credentials_do_not_let_other_sites_write(roles: Roles) -> None:
    basic = "Basic " + b64encode(f"x:{roles['admin'].token}".encode()).decode()
    page = await Editor(roles["public"]).send(
        "POST", "/edit/tags/new", [("name", "Planted")], Authorization=basic, Origin=OTHER
    )
    assert page.status == 403


async def test_caches_do_not_mix_callers(roles: Roles) -> None:
    await roles["admin"].event("Secret draft", status="draft", start_date="2027-06-01", end_date="2027-06-01")
    path = "/events/month/2027-06/?status=draft,publish"
    signed, stranger = Editor(roles["public"], roles["viewer"].token), Editor(roles["public"])
    page = await signed.get(path)
    assert (page.status, "Secret draft" in page.text) == (200, True)
    assert page.headers["Cache-Control"] == "private, no-cache"
    assert "Cookie" in page.headers["Vary"].replace(",", " ").split()
    page = await stranger.get("/events/month/2027-06/")
    assert (page.status, "Secret draft" in page.text) == (200, False)
    assert page.headers["Cache-Control"] == "no-cache"
    assert "Cookie" in page.headers["Vary"].replace(",", " ").split()


async def test_an_unchanged_page_keeps_its_headers(roles: Roles) -> None:
    """Browsers replace the headers that they have kept with those of a 304."""
    editor = Editor(roles["public"], roles["editor"].token)
    tag = await roles["editor"].made("tags", name="Jazz")
    path = f"/edit/tags/{tag['id']}"  # the form of a new record has another key each time
    full = await editor.get(path)
    again = await editor.send("GET", path, If_None_Match=full.headers["ETag"])
    assert (full.status, again.status) == (200, 304)
    for name in ("Cache-Control", "Vary", "Referrer-Policy"):
        assert again.headers.getall(name) == full.headers.getall(name), name
    assert full.headers["Referrer-Policy"] == "same-origin"  # otherwise forms are sent with Origin: null


async def test_what_was_typed_survives_the_end_of_a_session(roles: Roles) -> None:
    editor = Editor(roles["public"], roles["editor"].token)
    form = (await editor.get("/edit/venues/new")).form()
    editor.token = ""
    page = await editor.submit(form, venue='Hall "1"', description="One\r\ntwo", show_map=None)
    assert (page.status, "Your session has ended" in page.text) == (401, True)
    page = await editor.submit(page.form("/edit/venues/new"), token="kal_wrong")
    assert (page.status, "This token is not valid" in page.text) == (401, True)
    page = await editor.submit(page.form("/edit/venues/new"), token=roles["editor"].token)
    assert (page.status, "notice=created" in page.location) == (303, True)
    assert SimpleCookie(page.headers["Set-Cookie"])[COOKIE].value == roles["editor"].token
    venue = (await roles["public"].get("/venues"))[1]["venues"][0]
    assert (venue["venue"], venue["description"], venue["show_map"]) == ('Hall "1"', "One\ntwo", False)


async def test_signing_in_with_a_form_gives_no_more_than_the_role(roles: Roles) -> None:
    sent = [("name", "Planted"), ("was", '{"name": "x"}'), ("token", roles["viewer"].token)]
    assert (await Editor(roles["public"]).post("/edit/tags/new", sent)).status == 403
    assert (await roles["public"].get("/tags", hide_empty="0"))[1]["total"] == 0
