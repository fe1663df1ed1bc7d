"""The editor in Chromium: with a mouse, with the keyboard alone, without JavaScript, and in German."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import MILLISECONDS, Serve, Watched
from tests.test_faults import Running, command

REFUSED = "Failed to load resource"
"""What Chromium says about a page with an error status, which refused forms have."""


@pytest.fixture(scope="module")
def service(serve: Serve) -> Running:
    return serve(AUTH="token", TIMEZONE="Europe/Berlin", CURRENCY_SYMBOL="€", CURRENCY_CODE="EUR")


@pytest.fixture(scope="module")
def token(service: Running) -> str:
    made = command(service.data_dir, "token", "create", "--role", "editor", "--name", "browser")
    assert made.returncode == 0, made.stderr
    return made.stdout.strip().splitlines()[-1]


OpenEditor = Callable[..., Page]


@pytest.fixture
def open_editor(chromium: Browser, service: Running) -> Iterator[OpenEditor]:
    """Opens pages of the editor; at the end nothing may have gone wrong on any of them."""
    watched: list[Watched] = []
    with ExitStack() as stack:

        def opened(path: str = "/edit", context: Any = None, **options: Any) -> Page:
            if context is None:
                context = chromium.new_context(
                    **{"viewport": {"width": 1280, "height": 900}, "locale": "en-US"} | options
                )
                stack.callback(context.close)
            context.set_default_timeout(MILLISECONDS)
            watched.append(Watched(context.new_page(), service.root.partition("//")[2]))
            watched[-1].page.goto(service.root + path)
            return watched[-1].page

        yield opened
        found = [problem for one in watched for problem in one.problems if REFUSED not in problem]
        assert found == []


def sign_in(page: Page, token: str, button: str = "Sign in") -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name=button).click()
    page.wait_for_url("**/edit/events*")


def call(service: Running, token: str, method: str, path: str, body: Any = None) -> Any:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    sent = Request(service.api + path, json.dumps(body or {}).encode(), headers, method=method)
    with urlopen(sent) as answer:
        return json.load(answer)


def event_of(page: Page, service: Running, token: str) -> Any:
    """The event whose form is open."""
    headers = {"Authorization": f"Bearer {token}"}
    with urlopen(
        Request(service.api + page.url.rpartition("/edit")[2].partition("?")[0], headers=headers)
    ) as answer:
        return json.load(answer)


def fill(page: Page, title: str) -> None:
    page.get_by_label("Title").fill(title)
    page.get_by_label("Start", exact=False).first.fill("2027-06-04T19:30")
    page.locator("#field-end_date").fill("2027-06-04T22:00")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
@pytest.mark.parametrize("width", [1280, 390])
def test_from_signing_in_to_signing_out(
    service: Running, token: str, open_editor: OpenEditor, scripts: bool, width: int
) -> None:
    page = open_editor(java_script_enabled=scripts, viewport={"width": width, "height": 900})
    page.get_by_label("Token").fill("kal_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("This token is not valid")).to_be_visible()
    sign_in(page, token)

    page.get_by_role("link", name="Create an event").click()
    fill(page, "Open-Air Jazz")
    page.get_by_text("Create a venue").click()
    page.locator("#field-venue_new-venue").fill("Riverside Stage")
    page.locator("#field-venue_new-city").fill("Freiburg")
    page.locator("#field-cost").fill("10–15 €")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("Created.")
    event = event_of(page, service, token)
    assert (event["venue"]["city"], event["utc_start_date"]) == ("Freiburg", "2027-06-04 17:30:00")
    expect(page.locator("#field-cost-note")).to_contain_text("read as 10 EUR, 15 EUR")

    page.get_by_label("Title").fill("Indoor Jazz")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("Saved.")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status")).to_contain_text("Undone.")
    assert page.get_by_label("Title").input_value() == "Open-Air Jazz"

    page.get_by_role("button", name="Move to the trash").click()
    expect(page.get_by_role("status")).to_contain_text("Moved to the trash.")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status")).to_contain_text("Restored.")
    assert event_of(page, service, token)["status"] == "publish"

    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{service.root}/")
    page.goto(f"{service.root}/edit/events")
    expect(page.get_by_label("Token")).to_be_visible()


def test_mistakes_are_told_and_what_was_typed_is_kept(
    service: Running, token: str, open_editor: OpenEditor
) -> None:
    page = open_editor("/edit/events/new")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/edit/events/new")
    fill(page, "Too early")
    page.locator("#field-end_date").fill("2027-06-04T18:00")
    page.get_by_label("Description").fill("Kept <b>words</b>")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_be_focused()
    page.get_by_role("alert").get_by_role("link", name="End").click()
    expect(page.locator("#field-end_date")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#field-end_date")).to_have_accessible_description(
        "Must not be before the start. Europe/Berlin, UTC+02:00"
    )
    assert page.get_by_label("Description").input_value() == "Kept <b>words</b>"
    page.locator("#field-end_date").fill("2027-06-04T21:00")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("Created.")


def test_two_tabs_do_not_overwrite_each_other(service: Running, token: str, open_editor: OpenEditor) -> None:
    dates = {"start_date": "2027-06-01 10:00", "end_date": "2027-06-01 12:00"}
    event = call(service, token, "POST", "/events", {"title": "Shared", **dates})
    first = open_editor()
    sign_in(first, token)
    first.goto(f"{service.root}/edit/events/{event['id']}")
    second = open_editor(f"/edit/events/{event['id']}", first.context)
    first.get_by_label("Title").fill("From the first tab")
    first.get_by_role("button", name="Save").click()
    expect(first.get_by_role("status")).to_contain_text("Saved.")
    second.get_by_label("Title").fill("From the second tab")
    second.get_by_role("button", name="Save").click()
    row = second.get_by_role("row", name="Title")
    expect(row).to_contain_text("From the first tab")
    expect(row).to_contain_text("From the second tab")
    assert event_of(second, service, token)["title"] == "From the first tab"
    second.get_by_role("button", name="Save").click()
    expect(second.get_by_role("status")).to_contain_text("Saved.")
    assert event_of(second, service, token)["title"] == "From the second tab"


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def type_into(field: Locator, text: str) -> None:
    """Types into a date from its first part on."""
    field.blur()
    field.focus()
    field.page.keyboard.type(text)


def tab_to(page: Page, id: str) -> None:
    """Goes on with the tab key until an element has the focus."""
    for _ in range(80):
        if page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()") == id:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{id} cannot be reached")


def test_the_keyboard_is_enough(service: Running, token: str, open_editor: OpenEditor) -> None:
    page = open_editor("/edit/venues/new")
    page.locator("input:focus").wait_for()  # the only field
    page.keyboard.type(token)
    press(page, "Enter")
    page.wait_for_url("**/edit/venues/new")
    tab_to(page, "field-venue")
    page.keyboard.type("Keyboard Hall")
    tab_to(page, "field-city")
    page.keyboard.type("Tübingen")
    tab_to(page, "More")
    press(page, "Enter")
    tab_to(page, "field-state")
    page.keyboard.type("BW")
    tab_to(page, "Save")
    press(page, "Enter")
    expect(page.get_by_role("status")).to_contain_text("Created.")
    assert event_of(page, service, token)["stateprovince"] == "BW"


def test_notes_follow_what_is_typed(token: str, open_editor: OpenEditor) -> None:
    page = open_editor()
    sign_in(page, token)
    page.get_by_role("link", name="Create an event").click()
    page.locator("#field-start_date").fill("2027-03-28T02:30")
    expect(page.locator("#field-start_date-note")).to_contain_text("does not exist on this day")
    page.locator("#field-start_date").dispatch_event("change")
    assert page.locator("#field-end_date").input_value() == "2027-03-28T04:30"
    page.locator("#field-timezone").fill("America/New_York")
    expect(page.locator("#field-start_date-note")).to_have_text("America/New_York, UTC-04:00")
    page.locator("#field-cost").fill("12")
    expect(page.locator("#field-cost-note")).to_contain_text("€12")
    page.get_by_label("All day").check()
    assert page.locator("#field-start_date").get_attribute("type") == "date"
    assert page.locator("#field-start_date").input_value() == "2027-03-28"
    page.get_by_label("All day").uncheck()
    assert page.locator("#field-start_date").input_value() == "2027-03-28T02:30"


@pytest.mark.parametrize("all_day", [True, False])
def test_a_new_end_follows_a_start_that_is_typed(token: str, open_editor: OpenEditor, all_day: bool) -> None:
    """Chromium tells of a change after each digit of the year and of the minutes."""
    page = open_editor()
    sign_in(page, token)
    page.get_by_role("link", name="Create an event").click()
    start, end = page.locator("#field-start_date"), page.locator("#field-end_date")
    page.get_by_label("All day").set_checked(all_day)
    type_into(start, "06042027")
    if not all_day:
        press(page, "ArrowRight")
        page.keyboard.type("0730P")
    expect(end).to_have_value("2027-06-04" if all_day else "2027-06-04T21:30")
    type_into(start, "07052028")
    expect(end).to_have_value("2028-07-05" if all_day else "2028-07-05T21:30")
    type_into(end, "0706")
    type_into(start, "0704")
    expect(start).to_have_value("2028-07-04" if all_day else "2028-07-04T19:30")
    expect(end).to_have_value("2028-07-06" if all_day else "2028-07-06T21:30")


def test_in_german(service: Running, token: str, open_editor: OpenEditor) -> None:
    page = open_editor(locale="de-DE")
    sign_in(page, token, "Anmelden")
    page.get_by_role("link", name="Schlagwörter").click()
    page.get_by_role("link", name="Schlagwort anlegen").click()
    page.locator("#field-name").fill("draußen")
    page.get_by_role("button", name="Speichern").click()
    expect(page.get_by_role("status")).to_contain_text("Angelegt.")
    page.goto(f"{service.root}/edit/tags/new")
    page.locator("#field-name").fill("Draußen")
    page.get_by_role("button", name="Speichern").click()
    expect(page.locator("#field-name-problem")).to_contain_text("schon einen Eintrag mit diesem Namen")


def test_terms_are_deleted_after_a_question(service: Running, token: str, open_editor: OpenEditor) -> None:
    call(service, token, "POST", "/tags", {"name": "to be deleted"})
    page = open_editor()
    sign_in(page, token)
    page.get_by_role("link", name="Tags").click()
    page.get_by_role("link", name="Delete to be deleted").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Delete “to be deleted”?")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("status")).to_contain_text("Deleted.")
    expect(page.get_by_text("to be deleted")).to_have_count(0)
