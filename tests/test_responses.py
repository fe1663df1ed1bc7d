"""Answers on the wire: packed for those who can unpack, and not sent again to those who have them."""

from __future__ import annotations

import asyncio
import gzip
import threading
import zlib
from typing import Any

import orjson
import pytest

from service.http.compression import (
    MAX_BYTES_ON_LOOP,
    MIN_COMPRESSIBLE_BYTES,
    accepted_encoding,
    compress_body,
)
from tests.checker import DEADLINE
from tests.conftest import Api

UNPACK = {"gzip": gzip.decompress, "deflate": zlib.decompress, "": bytes}


@pytest.mark.parametrize(
    ("header", "coding"),
    [
        ("", None),
        ("gzip", "gzip"),
        ("GZIP", "gzip"),
        ("gzip, deflate, br, zstd", "gzip"),
        ("deflate", "deflate"),
        ("deflate, gzip;q=0.5", "deflate"),
        ("gzip;q=0", None),
        ("br", None),
        ("*", "gzip"),
        ("*;q=0", None),
        ("identity", None),
        ("identity, gzip;q=0.5", None),
        ("gzip;q=nonsense", None),
    ],
)
def test_the_coding_is_the_one_that_the_client_likes_best(header: str, coding: str | None) -> None:
    assert accepted_encoding(header) == coding


async def raw(api: Api, path: str, **headers: str) -> tuple[int, Any, bytes]:
    """Status, headers and the bytes as they were sent."""
    address = api.store.site.namespace + path
    sent = {"Accept-Encoding": "identity"} | headers
    async with api.client.session.get(
        api.client.make_url(address), headers=sent, auto_decompress=False
    ) as answer:
        return answer.status, answer.headers, await answer.read()


@pytest.mark.parametrize("path", ["/events", "/events/{id}", "/doc", "/venues"])
@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_packed_answers_say_the_same(api: Api, path: str, coding: str) -> None:
    event = await api.event(description="word " * 400, venue={"venue": "Hall"})
    path = path.format(id=event["id"])
    _, _, plain = await raw(api, path)
    for _ in range(2):  # the second time from what is kept
        status, headers, packed = await raw(api, path, **{"Accept-Encoding": coding})
        assert status == 200
        assert "Accept-Encoding" in headers["Vary"]
        if len(plain) < MIN_COMPRESSIBLE_BYTES:
            assert (packed, headers.get("Content-Encoding")) == (plain, None)
        else:
            assert headers["Content-Encoding"] == coding
            assert len(packed) < len(plain)
            assert orjson.loads(UNPACK[coding](packed)) == orjson.loads(plain)


async def test_a_packed_answer_of_an_older_version_is_never_sent(api: Api) -> None:
    event = await api.event("Event 0", description="word " * 400)
    for number in range(1, 5):
        await api.patch(f"/events/{event['id']}", {"title": f"Event {number}"})
        for path in ("/events", f"/events/{event['id']}"):
            _, _, packed = await raw(api, path, **{"Accept-Encoding": "gzip"})
            assert f"Event {number}".encode() in gzip.decompress(packed)


@pytest.mark.parametrize("coding", ["", "gzip"])
@pytest.mark.parametrize("path", ["/events", "/events/{id}", "/categories", "/events/by-slug/event"])
async def test_who_has_the_answer_is_told_so(api: Api, path: str, coding: str) -> None:
    event = await api.event(description="word " * 400, categories=["Music"])
    path = path.format(id=event["id"])
    packing = {"Accept-Encoding": coding or "identity"}
    _, headers, _ = await raw(api, path, **packing)
    tag = headers["ETag"]
    for held in (tag, f'"other", {tag}', "*"):
        status, headers, body = await raw(api, path, **packing, **{"If-None-Match": held})
        assert (status, body) == (304, b"")
        assert headers["ETag"] == (tag if held != "*" else tag.replace("-gzip", ""))
    assert (await raw(api, path, **packing, **{"If-None-Match": '"other"'}))[0] == 200
    await api.patch(f"/events/{event['id']}", {"title": "Changed"})
    await api.patch(f"/categories/{event['categories'][0]['id']}", {"description": "Changed"})
    status, headers, _ = await raw(api, path, **packing, **{"If-None-Match": tag})
    assert (status, headers["ETag"] == tag) == (200, False)


async def test_304_renders_nothing(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    event = await api.event()
    path = f"/events/{event['id']}"
    _, headers, _ = await raw(api, path)

    def refuse(*_: Any) -> None:
        raise AssertionError("rendered")

    monkeypatch.setattr("handlers.records.read_response", refuse)
    assert (await raw(api, path, **{"If-None-Match": headers["ETag"]}))[0] == 304


async def test_the_tag_of_a_packed_answer_guards_a_write(api: Api) -> None:
    event = await api.event(description="word " * 400)
    path = f"/events/{event['id']}"
    _, headers, _ = await raw(api, path, **{"Accept-Encoding": "gzip"})
    tag = headers["ETag"]
    assert tag.endswith('-gzip"')
    assert (await api.patch(path, {"title": "A"}, headers={"If-Match": tag}))[0] == 200
    assert (await api.patch(path, {"title": "B"}, headers={"If-Match": tag}))[0] == 412


async def test_a_compressed_answer_has_the_current_time_of_change(api: Api) -> None:
    """The list stays the same, and so does its ETag, but another record was changed."""
    await api.event(description="word " * 400)
    headers = {"Accept-Encoding": "gzip"}
    _, before, _ = await raw(api, "/events", **headers)
    await asyncio.sleep(1)  # the resolution of Last-Modified
    await api.made("venues", venue="Hall")
    _, after, _ = await raw(api, "/events", **headers)
    assert (after["ETag"], after["Content-Encoding"]) == (before["ETag"], "gzip")
    assert after["Last-Modified"] != before["Last-Modified"]


async def test_tags_differ_by_what_the_caller_sees(roles: dict[str, Api]) -> None:
    event = await roles["editor"].event(password="s3cret", description="zebra")
    tags = set()
    for role in ("public", "editor"):
        await roles[role].get(f"/events/{event['id']}", password="s3cret")
        tags.add(roles[role].headers["ETag"])
    assert len(tags) == 2


async def test_a_long_body_is_compressed_while_all_threads_wait_for_mongodb() -> None:
    body, answered, loop = b"long " * MAX_BYTES_ON_LOOP, threading.Event(), asyncio.get_running_loop()
    waiting = [loop.run_in_executor(None, answered.wait) for _ in range(100)]
    try:
        async with asyncio.timeout(DEADLINE):
            assert gzip.decompress(await compress_body(body, "gzip")) == body
    finally:
        answered.set()
        await asyncio.gather(*waiting)


async def test_warnings_about_one_request_are_not_sent_to_another(api: Api) -> None:
    """Compressed bodies are cached by their ETag."""
    path = f"/events/{(await api.event('Event', description='long ' * 500))['id']}"
    packed = {"Accept-Encoding": "gzip"}
    _, first = await api.send("PUT", path, {"descripton": "x"}, headers=packed)
    _, second = await api.send("PUT", path, {"titel": "x"}, headers=packed)
    _, third = await api.send("PUT", path, {}, headers=packed)
    assert [shown.get("warnings") for shown in (first, second, third)] == [
        ["unknown field: descripton"],
        ["unknown field: titel"],
        None,
    ]
