"""The end of a process that serves: requests under way are finished, and quiet connections delay nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest

from config import Settings
from service.http import in_flight
from service.process.serve import create_listener, serve_socket
from service.process.shutdown import Shutdown, Urgency
from service.store import Store
from tests.checker import DEADLINE
from tests.wire import Wire, connected, is_refused

TAG = {"name": "Jazz"}
LIVE = "/health/live"
TAGS = "/calendar/events/v1/tags"


@dataclass
class Served:
    """A server in this process that would wait for ever for a request under way."""

    port: int
    shutdown: Shutdown
    task: asyncio.Task[None]

    async def closes(self) -> None:
        """Until nobody else is let in."""
        async with asyncio.timeout(DEADLINE):
            while not await is_refused(self.port):
                await asyncio.sleep(0.01)

    async def ends(self) -> None:
        async with asyncio.timeout(DEADLINE):
            await self.task


@pytest.fixture
async def served(store: Store, mongodb_uri: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    monkeypatch.setattr(in_flight, "DRAIN_SECONDS", 3600.0)
    settings = replace(Settings(), port=0, mongodb_uri=mongodb_uri, database=store.database.name)
    shutdown, ready = Shutdown(), asyncio.Event()
    with create_listener(settings) as taken:
        port = taken.getsockname()[1]
        task = asyncio.create_task(serve_socket(settings, taken, shutdown, ready.set))
        await ready.wait()
        yield Served(port, shutdown, task)
        shutdown.request(Urgency.NOW)
        await task


@pytest.fixture
async def wire(served: Served) -> AsyncIterator[Wire]:
    async with connected(served.port) as wire:
        yield wire


@pytest.mark.parametrize("urgency", [Urgency.RETIRE, Urgency.STOP])
async def test_a_request_under_way_is_finished(served: Served, wire: Wire, urgency: Urgency) -> None:
    body = await wire.begin(TAGS, TAG)
    await wire.send(body[:5])
    served.shutdown.request(urgency)
    await served.closes()
    # Long enough for quiet connections to be looked at several times.
    await asyncio.sleep(5 * in_flight.DRAIN_POLL_SECONDS)
    await wire.send(body[5:])
    made = await wire.answer()
    assert (made.status, made.is_last) == (201, True)
    await wire.ends()
    await served.ends()


async def test_an_answer_that_is_ready_is_sent(
    served: Served, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_flight, "DRAIN_POLL_SECONDS", 0)
    served.shutdown.request(Urgency.RETIRE)
    await served.closes()
    # The stop comes after the handler has answered, and before anything is sent.
    monkeypatch.setattr(
        in_flight.InFlight, "close_if_draining", lambda *_: served.shutdown.request(Urgency.STOP)
    )
    assert (await wire.get(LIVE)).status == 200
    await served.ends()


async def test_a_request_under_way_can_be_given_up(served: Served, wire: Wire) -> None:
    body = await wire.begin(TAGS, TAG)
    await wire.send(body[:5])
    served.shutdown.request(Urgency.STOP)
    served.shutdown.request(Urgency.NOW)
    await wire.ends()
    await served.ends()


async def test_a_quiet_connection_does_not_delay_a_stop(served: Served, wire: Wire) -> None:
    assert not (await wire.get(LIVE)).is_last
    async with connected(served.port) as silent:
        served.shutdown.request(Urgency.STOP)
        await served.ends()
        await wire.ends()
        await silent.ends()


async def test_a_quiet_connection_has_another_answer_when_others_take_over(
    served: Served, wire: Wire
) -> None:
    assert not (await wire.get(LIVE)).is_last
    async with connected(served.port) as silent:
        served.shutdown.request(Urgency.RETIRE)
        await served.closes()
        for one in (wire, silent):
            last = await one.get(LIVE)
            assert (last.status, last.is_last) == (200, True)
            await one.ends()
    await served.ends()


async def test_who_retires_can_still_be_told_to_stop(served: Served, wire: Wire) -> None:
    await wire.get(LIVE)
    served.shutdown.request(Urgency.RETIRE)
    served.shutdown.request(Urgency.STOP)
    await wire.ends()
    await served.ends()
