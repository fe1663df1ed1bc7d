"""Pages of another site in Chromium: they may read; they may write only with a token, from a named origin."""

from __future__ import annotations

import json
from urllib.request import urlopen

from playwright.sync_api import Page

from tests.browser.conftest import OpenPage, Serve
from tests.test_faults import Running, command

READ = """async url => {
  const answer = await fetch(url);
  return [answer.status, answer.headers.get("X-TEC-Total"), (await answer.json()).venues.length];
}"""
WRITE = """async ([url, token]) => {
  const headers = {"Content-Type": "application/json", ...(token && {Authorization: `Bearer ${token}`})};
  try {
    const answer = await fetch(url, {method: "POST", headers, body: JSON.stringify({venue: "Planted"})});
    return [answer.status, answer.headers.get("Location")];
  } catch (error) {
    return [error.name];
  }
}"""
FORM = """url => {
  const form = Object.assign(document.createElement("form"), {method: "post", action: url});
  form.append(Object.assign(document.createElement("input"), {name: "venue", value: "Planted"}));
  document.body.append(form);
  form.submit();
}"""


def venues(service: Running) -> int:
    with urlopen(f"{service.api}/venues") as answer:
        return int(json.load(answer)["total"])


def token_for(service: Running) -> str:
    made = command(service.data_dir, "token", "create", "--role", "editor", "--name", "page")
    assert made.returncode == 0, made.stderr
    return made.stdout.strip().splitlines()[-1]


def on_another_site(open_page: OpenPage, site: str) -> Page:
    return open_page(site).page


def test_a_page_of_another_site_may_read(demo_service: Running, open_page: OpenPage, other_site: str) -> None:
    page = on_another_site(open_page, other_site)
    total = venues(demo_service)
    assert page.evaluate(READ, f"{demo_service.api}/venues") == [200, str(total), total]


def test_a_form_of_another_site_is_refused_in_open_mode(
    demo_service: Running, open_page: OpenPage, other_site: str
) -> None:
    before = venues(demo_service)
    page = on_another_site(open_page, other_site)
    assert page.evaluate(WRITE, [f"{demo_service.api}/venues", ""]) == ["TypeError"]
    with page.expect_response(f"{demo_service.api}/venues") as sent:
        page.evaluate(FORM, f"{demo_service.api}/venues")
    assert sent.value.status == 403
    assert sent.value.request.headers["origin"] == other_site
    assert venues(demo_service) == before


def test_the_services_own_page_may_write_in_open_mode(demo_service: Running, open_page: OpenPage) -> None:
    before = venues(demo_service)
    page = open_page(f"{demo_service.root}/docs").page
    status, location = page.evaluate(WRITE, [f"{demo_service.api}/venues", ""])
    assert (status, location is not None) == (201, True)
    assert venues(demo_service) == before + 1


def test_a_named_origin_may_write_with_a_token(serve: Serve, open_page: OpenPage, other_site: str) -> None:
    service = serve(AUTH="token", CORS_ORIGINS=other_site)
    page = on_another_site(open_page, other_site)
    url, token = f"{service.api}/venues", token_for(service)
    status, location = page.evaluate(WRITE, [url, token])
    assert (status, location.startswith(url)) == (201, True)
    assert page.evaluate(WRITE, [url, ""]) == [401, None]
    assert venues(service) == 1


def test_other_origins_may_not_write_with_a_token(serve: Serve, open_page: OpenPage, other_site: str) -> None:
    service = serve(AUTH="token")
    page = on_another_site(open_page, other_site)
    assert page.evaluate(WRITE, [f"{service.api}/venues", token_for(service)]) == ["TypeError"]
    assert page.evaluate(READ, f"{service.api}/venues") == [200, "0", 0]
