"""Replies byte by byte: each header once, a length where there is a body, an end that is announced."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from handlers.responses.prepared import DEFAULT_HEADERS, PreparedResponse, header_lines
from tests.checker import DEADLINE
from tests.conftest import Api
from tests.wire import Wire, connected


@pytest.fixture
async def wire(api: Api) -> AsyncIterator[Wire]:
    port = api.client.port
    assert port
    async with connected(port) as wire:
        yield wire


async def head_of(
    wire: Wire, method: str, path: str, *lines: str, version: str = "1.1"
) -> tuple[int, list[str]]:
    """Status of an answer, and its header lines; its body is read too."""
    text = "\r\n".join([f"{method} {path} HTTP/{version}", "Host: localhost", *lines])
    await wire.send(f"{text}\r\n\r\n".encode())
    async with asyncio.timeout(DEADLINE):
        first, *rows = (
            (await wire.reader.readuntil(b"\r\n\r\n")).decode().removesuffix("\r\n\r\n").split("\r\n")
        )
    assert first.startswith(f"HTTP/{version} ")
    length = dict(row.lower().split(": ", 1) for row in rows).get("content-length", "0")
    await wire.reader.readexactly(0 if method == "HEAD" else int(length))
    return int(first.split()[1]), rows


async def test_no_header_is_sent_twice_and_none_is_forgotten(api: Api, wire: Wire) -> None:
    event = await api.event(description="word " * 400)
    root = api.store.site.namespace
    asked: list[tuple[int, str, str, list[str]]] = [
        (200, "GET", f"{root}/events", []),
        (
            200,
            "GET",
            f"{root}/events/{event['id']}",
            ["Accept-Encoding: gzip", "Origin: https://example.org"],
        ),
        (200, "HEAD", f"{root}/events/{event['id']}", []),
        (200, "GET", "/docs", []),
        (200, "GET", "/docs/swagger-ui.css", ["Accept-Encoding: gzip"]),
        (204, "OPTIONS", f"{root}/events", ["Origin: https://example.org"]),
        (200, "GET", "/", []),
        (404, "GET", "/nope", ["Accept: text/html"]),
        (304, "GET", f"{root}/events/{event['id']}", ["If-None-Match: *"]),
        (304, "GET", "/docs/swagger-ui.css", ["If-None-Match: *"]),
        (400, "POST", f"{root}/events", ["Content-Type: application/json", "Content-Length: 0"]),
        (404, "GET", f"{root}/events/4711", []),
        (405, "PUT", f"{root}/events", ["Content-Length: 0"]),
    ]
    for status, method, path, lines in asked:
        answered, rows = await head_of(wire, method, path, *lines)
        assert answered == status, path
        names = Counter(row.partition(":")[0].lower() for row in rows)
        assert set(names.values()) == {1}, rows
        expected = {name.lower() for name in DEFAULT_HEADERS} | {"date", "x-request-id"}
        assert expected <= names.keys(), rows
        assert ("content-length" in names) is (status not in (204, 304)), rows


async def test_a_page_may_say_otherwise_than_all_others(wire: Wire) -> None:
    for path, said in (("/docs", "no-cache"), ("/docs/swagger-ui.css", "max-age=86400")):
        _, rows = await head_of(wire, "GET", path)
        assert [row for row in rows if row.startswith("Cache-Control")] == [f"Cache-Control: {said}"]


@pytest.mark.parametrize(
    ("version", "sent", "told", "is_kept"),
    [
        ("1.1", [], [], True),
        ("1.1", ["Connection: keep-alive"], [], True),
        ("1.1", ["Connection: close"], ["Connection: close"], False),
        ("1.0", [], ["Connection: close"], False),
        ("1.0", ["Connection: keep-alive"], ["Connection: keep-alive"], True),
    ],
)
async def test_a_connection_ends_when_the_client_wants(
    api: Api, wire: Wire, version: str, sent: list[str], told: list[str], is_kept: bool
) -> None:
    path = f"{api.store.site.namespace}/events"
    _, rows = await head_of(wire, "GET", path, *sent, version=version)
    assert [row for row in rows if row.startswith("Connection")] == told
    if is_kept:
        assert (await head_of(wire, "GET", path))[0] == 200
    else:
        await wire.ends()


async def test_a_created_record_and_the_same_one_unchanged_are_told_apart_when_packed(api: Api) -> None:
    packed = {"Accept-Encoding": "gzip"}
    status, event = await api.post("/events", _large(), headers=packed)
    assert (status, "Location" in api.headers, api.headers["Content-Encoding"]) == (201, True, "gzip")
    status, same = await api.patch(f"/events/{event['id']}", {"title": event["title"]}, headers=packed)
    assert (status, "Location" in api.headers, api.headers["Content-Encoding"]) == (200, False, "gzip")
    assert same["description"] == event["description"]


def _large() -> dict[str, str]:
    dates = {"start_date": "2030-01-01 10:00:00", "end_date": "2030-01-01 12:00:00"}
    return {"title": "Large", "description": "word " * 400, **dates}


@pytest.mark.parametrize("broken", ["a\r\nSet-Cookie: x=1", "a\nb", "a\rb", "a\0b"])
def test_a_header_never_ends_early(broken: str) -> None:
    with pytest.raises(ValueError, match="control character"):
        header_lines({"Location": broken})
    with pytest.raises(ValueError, match="control character"):
        PreparedResponse(b"", {"Location": broken}, 302)
