"""Streamed responses count as requests in flight until they are sent, and shutdown waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from functools import partial
from typing import Any

import pytest

from handlers import feeds
from handlers.responses import streamed
from handlers.responses.streamed import StreamedResponse
from service.http import in_flight
from service.process.shutdown import Urgency
from tests.checker import DEADLINE
from tests.conftest import MakeApi
from tests.test_shutdown import Served, served
from tests.wire import Wire, connected

__all__ = ["served"]
FEED = "/calendar/events/v1/events.csv"
LAST_CHUNK = b"0\r\n\r\n"


class Stream:
    """Takes the place of the chunks of a feed: the second one comes when the test says so."""

    def __init__(self) -> None:
        self.goes_on, self.is_closed = asyncio.Event(), asyncio.Event()

    async def chunks(self, *_: Any) -> AsyncGenerator[bytes]:
        try:
            yield b"first"
            await self.goes_on.wait()
            yield b"second"
        finally:
            self.is_closed.set()


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Stream:
    made = Stream()
    monkeypatch.setattr(feeds.FeedHandlers, "chunks", made.chunks)
    return made


@pytest.fixture
async def begun(served: Served, stream: Stream) -> AsyncIterator[Wire]:
    """A connection on which the first chunk has come."""
    async with connected(served.port) as wire:
        await wire.send(f"GET {FEED} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        async with asyncio.timeout(DEADLINE):
            await wire.reader.readuntil(b"first\r\n")
        yield wire


async def rest_of(wire: Wire) -> bytes:
    async with asyncio.timeout(DEADLINE):
        return await wire.reader.readuntil(LAST_CHUNK)


@pytest.mark.parametrize("urgency", [Urgency.RETIRE, Urgency.STOP])
async def test_a_stream_under_way_is_finished(
    served: Served, begun: Wire, stream: Stream, urgency: Urgency
) -> None:
    served.shutdown.request(urgency)
    await served.closes()
    # Long enough for quiet connections to be looked at several times.
    await asyncio.sleep(5 * in_flight.DRAIN_POLL_SECONDS)
    stream.goes_on.set()
    assert b"second" in await rest_of(begun)
    served.shutdown.request(Urgency.STOP)
    await begun.ends()
    await served.ends()


async def test_a_stream_under_way_can_be_given_up(served: Served, begun: Wire, stream: Stream) -> None:
    served.shutdown.request(Urgency.STOP)
    served.shutdown.request(Urgency.NOW)
    await served.ends()
    assert LAST_CHUNK not in await begun.reader.read()  # the client sees that it is incomplete
    assert stream.is_closed.is_set()


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "StreamedResponse", partial(StreamedResponse, is_endless=True))


@pytest.mark.usefixtures("endless")
@pytest.mark.parametrize("urgency", [Urgency.RETIRE, Urgency.STOP])
async def test_an_endless_stream_ends_when_shutdown_begins(
    served: Served, begun: Wire, stream: Stream, urgency: Urgency
) -> None:
    served.shutdown.request(urgency)
    assert await rest_of(begun) == LAST_CHUNK
    assert stream.is_closed.is_set()
    served.shutdown.request(Urgency.STOP)
    await served.ends()


@pytest.mark.usefixtures("endless", "stream")
async def test_an_endless_stream_that_is_requested_during_shutdown_ends_at_once(served: Served) -> None:
    async with connected(served.port) as wire:
        assert (await wire.get("/health/live")).status == 200
        served.shutdown.request(Urgency.RETIRE)
        await served.closes()
        await wire.send(f"GET {FEED} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert b" 200 " in await rest_of(wire)
        await wire.ends()
    await served.ends()


@pytest.mark.usefixtures("endless")
async def test_an_endless_stream_is_not_held_back_for_compression(make_api: MakeApi, stream: Stream) -> None:
    api = await make_api()
    gzip = {"Accept-Encoding": "gzip"}
    async with asyncio.timeout(DEADLINE), api.client.get(FEED, headers=gzip) as answer:
        assert await answer.content.readexactly(5) == b"first"
        stream.goes_on.set()


async def test_a_stream_is_one_of_the_concurrent_requests_but_has_no_time_limit(
    make_api: MakeApi, stream: Stream
) -> None:
    api = await make_api(max_concurrent=1, request_seconds=1)
    async with api.client.get(FEED) as answer:
        await asyncio.sleep(1 + 2 * in_flight.OVERDUE_CHECK_SECONDS)
        assert (await api.get("/events"))[0] == 503
        assert (await api.get("//health/live"))[0] == 200
        stream.goes_on.set()
        assert (await answer.read()).endswith(b"second")
    assert (await api.get("/events"))[0] == 200


async def test_requests_after_a_stream_still_have_a_time_limit(
    make_api: MakeApi, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = await make_api(request_seconds=1)
    async with api.client.get(FEED) as answer:
        monkeypatch.setattr(api.store, "page", lambda *_: asyncio.Event().wait())
        assert (await api.get("/events"))[0] == 503
        stream.goes_on.set()
        await answer.read()


async def test_a_client_that_stops_reading_is_disconnected(
    make_api: MakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamed, "STALL_SECONDS", 0.2)
    is_closed = asyncio.Event()

    async def flood(*_: Any) -> AsyncGenerator[bytes]:
        try:
            while True:
                yield bytes(1_000_000)
        finally:
            is_closed.set()

    monkeypatch.setattr(feeds.FeedHandlers, "chunks", flood)
    api = await make_api(max_concurrent=1)
    async with connected(api.client.port or 0) as wire:
        await wire.send(f"GET {FEED} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        async with asyncio.timeout(DEADLINE):
            await is_closed.wait()
    assert (await api.get("/events"))[0] == 200
