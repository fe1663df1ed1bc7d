"""The documentation page in Chromium: every operation works with what the page itself proposes."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple
from urllib.request import urlopen

import pytest
from playwright.sync_api import Locator, Page, Response

from schemas import KINDS
from tests.browser.conftest import OpenPage, Serve
from tests.samples import POSTS
from tests.test_faults import Running, command

TRY = re.compile("^(Try it out|Cancel)")
"""The button before and after it was pressed."""


class Tried(NamedTuple):
    """An operation of the document."""

    tag: str
    id: str
    method: str
    status: int


def operations(service: Running) -> dict[str, Tried]:
    """Every operation by its id, with the status that the document promises."""
    with urlopen(f"{service.api}/openapi.json") as answer:
        paths = json.load(answer)["paths"]
    return {
        said["operationId"]: Tried(
            said["tags"][0],
            said["operationId"],
            method.upper(),
            next(int(status) for status in said["responses"] if status.startswith("2")),
        )
        for methods in paths.values()
        for method, said in methods.items()
    }


def in_order(ids: set[str]) -> list[str]:
    """All operations, so that each finds what it needs: events are created first, with all that they link to.
    What was deleted by its ID is created again before it is deleted by its slug."""
    creations = [f"create{kind.name.capitalize()}" for kind in KINDS]
    by_slug = {f"delete{kind.name.capitalize()}BySlug" for kind in POSTS}
    deletions = {one for one in ids if one.startswith("delete")} - by_slug
    between = sorted(ids - {*creations} - by_slug - deletions)
    again = [f"create{kind.name.capitalize()}" for kind in POSTS]
    return [*creations, *between, *sorted(deletions), *again, *sorted(by_slug)]


def expanded(page: Page, operation: Tried) -> Locator:
    block = page.locator(f"#operations-{operation.tag}-{operation.id}")
    if not block.locator(".opblock-body").is_visible():
        block.locator(".opblock-summary-control").click()
    block.locator(".opblock-body").wait_for()
    return block


def attempt(page: Page, operation: Tried) -> Response:
    """Presses "Try it out" and "Execute", and waits until the page shows the answer."""
    block = expanded(page, operation)
    button = block.get_by_role("button", name=TRY)
    button.wait_for()  # it may come later than the rest
    if button.inner_text().startswith("Try"):
        button.click()
    with page.expect_response(lambda answer: answer.request.method == operation.method) as waiting:
        block.get_by_role("button", name="Execute").click()
    answer = waiting.value
    shown = block.locator(".live-responses-table tbody td.response-col_status").first
    shown.filter(has_text=str(answer.status)).wait_for()
    return answer


def is_within(page: Page, width: int) -> bool:
    """Whether the page can be read without scrolling sideways."""
    return bool(page.evaluate("document.documentElement.scrollWidth") <= width)


def test_every_operation_works_as_proposed(serve: Serve, open_page: OpenPage) -> None:
    service = serve()
    found = operations(service)
    watched = open_page(f"{service.root}/docs")
    del found["streamChanges"]  # its response does not end; test_changes.py reads it
    tried = in_order(set(found))
    assert set(tried) == set(found)
    for id in tried:
        answer = attempt(watched.page, found[id])
        assert answer.status == found[id].status, (id, answer.request.url, answer.text())
        expanded(watched.page, found[id]).locator(".opblock-summary-control").click()
    assert watched.problems == []


def test_demo_data_has_what_is_proposed_to_be_read(demo_service: Running, open_page: OpenPage) -> None:
    found = operations(demo_service)
    watched = open_page(f"{demo_service.root}/docs", 390)
    reads = [id for id in found if id.startswith("read")]
    assert len(reads) == 11
    for id in reads:
        answer = attempt(watched.page, found[id])
        assert answer.status == 200, (id, answer.request.url, answer.text())
        assert is_within(watched.page, 390), id
        expanded(watched.page, found[id]).locator(".opblock-summary-control").click()
    assert watched.problems == []


@pytest.mark.parametrize("name", ["categories", "tags"])
def test_filters_take_slugs(demo_service: Running, open_page: OpenPage, name: str) -> None:
    watched = open_page(f"{demo_service.root}/docs")
    operation = operations(demo_service)["listEvents"]
    block = expanded(watched.page, operation)
    block.get_by_role("button", name="Try it out").click()
    row = block.locator(f'tr[data-param-name="{name}"]')
    row.get_by_role("button", name="Add string item").click()
    slug = {"categories": "literature", "tags": "books"}[name]
    row.get_by_role("textbox").fill(slug)
    found = attempt(watched.page, operation).json()
    assert found["total"] > 0
    assert all(slug in {term["slug"] for term in event[name]} for event in found["events"])
    assert watched.problems == []


def test_page_is_usable_on_a_phone(demo_service: Running, open_page: OpenPage) -> None:
    watched = open_page(f"{demo_service.root}/docs", 390)
    page, found = watched.page, operations(demo_service)
    for id in ("listEvents", "createEvent", "updateVenueBySlug"):
        block = expanded(page, found[id])
        for name in ("Try it out", "Execute"):
            box = block.get_by_role("button", name=name).bounding_box()
            assert box
            assert box["x"] >= 0, (id, name)
            assert box["x"] + box["width"] <= 390, (id, name)
            block.get_by_role("button", name=name).click()
        block.get_by_role("tab", name="Schema").first.click()
        assert is_within(page, 390), id
    page.get_by_role("button", name="Authorize").click()
    assert is_within(page, 390)
    box = page.locator(".modal-ux").bounding_box()
    assert box
    assert (box["x"] >= 0, box["x"] + box["width"] <= 390) == (True, True)


@pytest.mark.parametrize(
    ("query", "summaries"),
    [
        ("", {"listEvents": "List events", "createVenue": "Create a venue", "deleteTag": "Delete a tag"}),
        ("?lang=de", {"listEvents": "Veranstaltungen auflisten", "createTag": "Schlagwort anlegen"}),
    ],
)
def test_operations_are_named_for_their_records_in_the_language_of_the_page(
    demo_service: Running, open_page: OpenPage, query: str, summaries: dict[str, str]
) -> None:
    watched = open_page(f"{demo_service.root}/docs{query}")
    found = operations(demo_service)
    for id, summary in summaries.items():
        block = watched.page.locator(f"#operations-{found[id].tag}-{id}")
        assert block.locator(".opblock-summary-description").inner_text() == summary
    assert watched.problems == []


CODES: dict[str, dict[str, str]] = {
    "listEvents": {"400": "rest_invalid_param", "404": "event-archive-page-not-found"},
    "readEvent": {"404": "event-not-found", "410": "event-is-in-trash"},
    "readVenueBySlug": {"403": "venue-not-accessible", "404": "venue-not-found", "503": "rest_unavailable"},
    "createOrganizer": {"400": "rest_missing_callback_param", "401": "rest_forbidden"},
    "updateTag": {"409": "duplicate_term_slug", "412": "rest_precondition_failed", "429": "rest_too_many"},
}


def test_each_error_shows_its_own_code_and_meaning(demo_service: Running, open_page: OpenPage) -> None:
    watched = open_page(f"{demo_service.root}/docs")
    found = operations(demo_service)
    for id, codes in CODES.items():
        block = expanded(watched.page, found[id])
        rows = {
            row.locator(".response-col_status").inner_text(): row
            for row in block.locator(".responses-table tr.response").all()
        }
        for status, code in codes.items():
            assert f'"code": "{code}' in rows[status].locator(".response-col_description").inner_text()
        meanings = [row.locator(".response-col_description__inner").inner_text() for row in rows.values()]
        assert len(set(meanings)) == len(meanings)
    assert watched.problems == []


def authorize(page: Page, token: str) -> None:
    page.get_by_role("button", name="Authorize").first.click()
    container = page.locator(".auth-container").filter(has_text="Bearer")
    container.get_by_role("textbox").fill(token)
    container.get_by_role("button", name="Apply credentials").click()
    page.get_by_role("button", name="Close").first.click()


def test_a_token_authorizes(serve: Serve, open_page: OpenPage) -> None:
    service = serve(AUTH="token")
    made = command(service.data_dir, "token", "create", "--role=editor", "--name=Me")
    watched = open_page(f"{service.root}/docs")
    create = operations(service)["createEvent"]
    assert attempt(watched.page, create).status == 401
    authorize(watched.page, made.stdout.split()[-1])
    assert attempt(watched.page, create).status == 201
    refused = [one for one in watched.problems if "401" not in one]
    assert refused == []


def test_page_works_under_another_name_of_the_machine(demo_service: Running, open_page: OpenPage) -> None:
    watched = open_page(f"{demo_service.root}/docs".replace("127.0.0.1", "localhost"))
    answer: Any = attempt(watched.page, operations(demo_service)["createTag"])
    assert answer.status == 201
    assert watched.problems == []
