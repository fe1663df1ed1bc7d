"""The connection on which the primary is asked for `hello`: the answer is to the last request, or none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import bson
import pymongo
import pytest

from service.mongo import hello
from service.mongo.hello import HEADER, MAX_NUMBER, OP_MSG, Address, HelloConnection
from service.mongo.write_clock import PRIMARY, uses_tls
from service.store import Store
from tests.conftest import Api

Answer = Callable[[int, asyncio.StreamWriter], Awaitable[None]]


def message(answered: int, **said: object) -> bytes:
    body = bson.encode(said)
    return HEADER.pack(HEADER.size + len(body), 7, answered, OP_MSG, 0, 0) + body


@asynccontextmanager
async def member(answer: Answer) -> AsyncIterator[Address]:
    """A server that answers each request as it is told."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                length, number, *_ = HEADER.unpack(await reader.readexactly(HEADER.size))
                assert bson.decode(await reader.readexactly(length - HEADER.size))["hello"] == 1
                await answer(number, writer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()


def primary_of(store: Store) -> Address:
    servers = store.client.delegate.topology_description.server_descriptions().values()
    (address,) = (server.address for server in servers if server.server_type_name == PRIMARY)
    return address


async def test_a_primary_says_the_same_as_to_the_driver(store: Store) -> None:
    connection = HelloConnection()
    said, told = await connection.hello(primary_of(store)), await store.client.admin.command("hello")
    connection.close()
    assert said
    assert {name: said[name] for name in ("setName", "electionId", "isWritablePrimary")} == {
        name: told[name] for name in ("setName", "electionId", "isWritablePrimary")
    }
    assert said["lastWrite"].keys() == told["lastWrite"].keys()


@pytest.mark.parametrize(("options", "expected"), [("", False), ("?tls=true", True), ("?ssl=true", True)])
def test_a_client_with_tls_is_recognized(options: str, expected: bool) -> None:
    with pymongo.MongoClient[Any](f"mongodb://localhost/{options}", connect=False) as client:
        assert uses_tls(client) is expected


async def close(_: int, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def say_nothing(_: int, __: asyncio.StreamWriter) -> None:
    pass


async def say_nonsense(_: int, writer: asyncio.StreamWriter) -> None:
    writer.write(HEADER.pack(HEADER.size + 9, 7, 1, OP_MSG, 0, 0) + b"\xff" * 9)


async def say_too_little(_: int, writer: asyncio.StreamWriter) -> None:
    writer.write(HEADER.pack(3, 7, 1, OP_MSG, 0, 0))


async def answer_another_request(number: int, writer: asyncio.StreamWriter) -> None:
    writer.write(message(number - 1, ok=1))


@pytest.mark.parametrize(
    "answer",
    [close, say_nothing, say_nonsense, say_too_little, answer_another_request],
    ids=lambda one: one.__name__,
)
async def test_whatever_else_a_member_says_is_no_answer(
    answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hello, "MAX_SECONDS", 0.1)
    asked = list[int]()

    async def count(number: int, writer: asyncio.StreamWriter) -> None:
        asked.append(number)
        await answer(number, writer)

    connection = HelloConnection()
    async with member(count) as address:
        assert await connection.hello(address) is None
        assert await connection.hello(address) is None
        assert len(asked) == 1, "it is not asked again at once"
        connection._paused_until = 0
        assert await connection.hello(address) is None
        assert len(asked) == 2
    connection._paused_until = 0
    assert await connection.hello(address) is None, "nobody listens any more"


async def test_an_answer_that_comes_late_is_not_taken_for_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hello, "MAX_SECONDS", 10)
    numbers, is_asked = list[int](), asyncio.Event()

    async def answer_the_first_one_late(number: int, writer: asyncio.StreamWriter) -> None:
        numbers.append(number)
        is_asked.set()
        if number == 0:
            await asyncio.sleep(0.1)
        writer.write(message(number, number=number))

    connection = HelloConnection()
    connection._number = MAX_NUMBER - 1
    async with member(answer_the_first_one_late) as address:
        first = asyncio.create_task(connection.hello(address))
        await is_asked.wait()
        first.cancel()
        await asyncio.wait([first])
        assert await connection.hello(address) == {"number": 1}
        await asyncio.sleep(0.2)
        assert await connection.hello(address) == {"number": 2}
        connection.close()
    assert numbers == [0, 1, 2]


async def test_one_that_is_ended_while_it_is_opened_does_not_stay_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connection, connect, opened = HelloConnection(), hello._connect, list[asyncio.StreamWriter]()

    async def end_meanwhile(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await connect(address)
        opened.append(writer)
        connection.end()
        return reader, writer

    async def agree(number: int, writer: asyncio.StreamWriter) -> None:
        writer.write(message(number, ok=1))

    monkeypatch.setattr(hello, "_connect", end_meanwhile)
    async with member(agree) as address:
        await connection.hello(address)
        assert await connection.hello(address) is None
    assert [writer.is_closing() for writer in opened] == [True]


async def test_a_cut_connection_hides_no_change(pair: tuple[Api, Api]) -> None:
    writer, reader = pair
    for number in range(3):
        await writer.event(f"Event {number}")
        assert len(await reader.ids("events")) == number + 1
        streams = reader.store.feed.clock._connection._streams
        assert streams
        streams[1].transport.abort()
