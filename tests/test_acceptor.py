"""The door to a port: processes share what waits before it, and a full system is asked again."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest
from aiohttp import web

from config import Settings
from service.http import acceptor
from service.http.acceptor import Acceptor
from service.process.serve import create_listener
from tests.checker import until


@dataclass
class Way:
    """A socket, the door to it, and the server behind that."""

    taken: socket.socket
    server: web.Server
    acceptor: Acceptor

    async def close(self) -> None:
        if self.taken.fileno() >= 0:
            await self.acceptor.close()
        await self.server.shutdown()

    async def finds_no_room(self, caplog: pytest.LogCaptureFixture) -> None:
        self.acceptor.open()
        while not caplog.records:
            await asyncio.sleep(0)

    async def has_connections(self) -> bool:
        return bool(self.server.connections)


@pytest.fixture
def taken() -> Iterator[socket.socket]:
    with create_listener(replace(Settings(), port=0)) as taken:
        yield taken


@pytest.fixture
async def ways(taken: socket.socket, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Way, Way]]:
    """As two processes have them: a socket of each for one port."""
    monkeypatch.setattr(acceptor, "ACCEPT_RETRY_SECONDS", 0.01)

    async def handle(request: web.BaseRequest) -> web.Response:
        return web.Response()

    def way() -> Way:
        own, server = taken.dup(), web.Server(handle)
        return Way(own, server, Acceptor(own, server))

    ways = (way(), way())
    yield ways
    for one in ways:
        await one.close()


@contextmanager
def waiting(taken: socket.socket, count: int) -> Iterator[None]:
    """Clients that have knocked."""
    clients = [socket.create_connection(taken.getsockname()) for _ in range(count)]
    yield
    for client in clients:
        client.close()


@contextmanager
def no_room() -> Iterator[None]:
    """A process that has as many files open as it may."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def test_two_doors_share_what_waits(taken: socket.socket, ways: tuple[Way, Way]) -> None:
    with waiting(taken, 20):
        for way in ways:
            way.acceptor.open()

        async def all_are_in() -> bool:
            return sum(len(way.server.connections) for way in ways) == 20

        await until(all_are_in)
        assert all(len(way.server.connections) >= 5 for way in ways)


async def test_who_was_let_in_is_served_when_the_door_closes(
    taken: socket.socket, ways: tuple[Way, Way]
) -> None:
    way, _ = ways
    way.acceptor.open()
    with waiting(taken, 1):
        while not way.acceptor._connecting:
            await asyncio.sleep(0)
        assert not await way.has_connections()
        await way.acceptor.close()
        assert await way.has_connections()


async def test_a_full_system_is_asked_again(
    taken: socket.socket, ways: tuple[Way, Way], caplog: pytest.LogCaptureFixture
) -> None:
    way, _ = ways
    with waiting(taken, 1):
        with no_room():
            await way.finds_no_room(caplog)
        await until(way.has_connections)
    assert "cannot accept connections" in caplog.text


async def test_a_door_that_found_no_room_can_be_closed(
    taken: socket.socket, ways: tuple[Way, Way], caplog: pytest.LogCaptureFixture
) -> None:
    way, _ = ways
    with waiting(taken, 1):
        with no_room():
            await way.finds_no_room(caplog)
            await way.acceptor.close()
        await asyncio.sleep(5 * acceptor.ACCEPT_RETRY_SECONDS)
    assert len(caplog.records) == 1, "it does not try to open again"
    assert not await way.has_connections()
