"""Receivers of webhooks that are not as they should be, and what the operator is told about them."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import ClientTimeout, web
from aiohttp.resolver import ThreadedResolver
from aiohttp.test_utils import TestServer
from standardwebhooks.webhooks import Webhook as Verifier

from service.store import Store
from service.webhooks.sending import Message, open_sender
from tests.test_faults import command

LOCAL = (ip_network("127.0.0.0/8"),)
SECRET = "whsec_" + "c2VjcmV0" * 5
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def send(url: str, body: bytes = b"{}") -> str | None:
    async with asyncio.timeout(60), open_sender(LOCAL) as sender:
        return await sender.send(url, SECRET, Message("1.a-1", body))


@asynccontextmanager
async def raw_server(serve: Serve) -> AsyncIterator[str]:
    """The address of a server that answers each request with a function, after its head."""
    ended: list[asyncio.Event] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended.append(asyncio.Event())
        try:
            await reader.readuntil(b"\r\n\r\n")
            await serve(reader, writer)
        except ConnectionError:
            pass  # the sender has had enough
        finally:
            writer.transport.abort()
            ended[-1].set()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with asyncio.timeout(60), server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
        for one in ended:
            await one.wait()


@asynccontextmanager
async def secure_server(authority: trustme.CA, name: str, secrets: list[str]) -> AsyncIterator[str]:
    """The address of a receiver with TLS that accepts messages which are signed with a secret."""

    async def accept(request: web.Request) -> web.Response:
        Verifier(secrets[0]).verify(await request.read(), dict(request.headers))
        return web.Response()

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(name).configure_cert(context)
    app = web.Application()
    app.router.add_post("/hook", accept)
    server = TestServer(app, scheme="https")
    await server.start_server(ssl=context)
    try:
        yield f"https://localhost:{server.port}/hook"
    finally:
        await server.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "is_trusted", "expected"),
    [
        ("localhost", True, "accepted after"),
        ("localhost", False, "the certificate is not trusted: unable to get local issuer certificate"),
        ("example.org", True, "the certificate is not trusted: Hostname mismatch"),
    ],
)
async def test_an_authority_of_ones_own_is_trusted_through_the_environment(
    store: Store,
    mongodb_uri: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    is_trusted: bool,
    expected: str,
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    if is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    database = {"MONGODB_URI": mongodb_uri, "DATABASE": store.database.name}

    async def kalends(*words: str) -> Any:
        settings = database | {"WEBHOOK_NETWORKS": "127.0.0.0/8,::1"}
        return await asyncio.to_thread(command, tmp_path, "webhook", *words, **settings)

    secrets: list[str] = []
    async with secure_server(authority, name, secrets) as url:
        added = await kalends("add", url)
        secrets.append(added.stdout.strip())
        tried = await kalends("test", "1")
    assert expected in tried.stdout, (added, tried)


@pytest.mark.parametrize("second", [["127.0.0.1"], ["8.8.8.8", "10.0.0.1"], ["::ffff:127.0.0.1"]])
async def test_a_name_that_becomes_private_is_refused(
    monkeypatch: pytest.MonkeyPatch, second: list[str]
) -> None:
    """A name is resolved once for a message: the addresses that are checked are those that are used."""
    answers, reached = [["8.8.8.8"], second, ["8.8.8.8"]], []

    async def resolve(self: Any, host: str, port: int = 0, family: Any = socket.AF_INET) -> Any:
        found = {"hostname": host, "port": port, "family": socket.AF_INET, "proto": 0, "flags": 0}
        return [{**found, "host": one} for one in answers.pop(0)]

    async def connect(*arguments: Any, **options: Any) -> socket.socket:
        reached.extend(one[4][0] for one in options["addr_infos"])
        raise OSError("not in a test")

    monkeypatch.setattr(ThreadedResolver, "resolve", resolve)
    monkeypatch.setattr("aiohttp.connector.aiohappyeyeballs.start_connection", connect)
    async with open_sender(()) as sender:
        first, then = [await sender.send("http://example.org/", SECRET, Message("1", b"{}")) for _ in "12"]
    assert first == "not in a test"
    assert "is a private address" in str(then)
    assert reached == ["8.8.8.8"]
    assert len(answers) == 1


async def test_an_answer_that_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.webhooks.sending.TIMEOUT", ClientTimeout(total=0.5))

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)

    async with raw_server(drip) as url:
        assert await send(url) == "no response within 0.5 seconds"


async def test_the_body_of_an_answer_is_not_read() -> None:
    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
        while True:  # until the sender closes the connection
            writer.write(b"x" * 65536)
            await writer.drain()

    async with raw_server(pour) as url:
        assert await send(url) is None


async def test_an_answer_before_the_message_is_read_counts() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        await reader.read(1)
        await asyncio.sleep(0.2)

    async with raw_server(answer) as url:
        assert await send(url, b"x" * 1_000_000) == "status 413"


@pytest.mark.parametrize(
    "answer", [b"SSH-2.0-x\r\n", b"", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n"]
)
async def test_what_is_no_http_answer_is_told(answer: bytes) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()
        writer.write_eof()
        await reader.read()

    async with raw_server(say) as url:
        problem = await send(url)
    assert problem
    assert url not in problem  # it may contain a secret
    assert len(problem) < 300
    assert "\n" not in problem


async def test_cookies_are_not_kept() -> None:
    cookies: list[str | None] = []

    async def handle(request: web.Request) -> web.Response:
        cookies.append(request.headers.get("Cookie"))
        return web.Response(headers={"Set-Cookie": "a=b"})

    app = web.Application()
    app.router.add_post("/hook", handle)
    async with (
        TestServer(app, host="localhost") as server,
        open_sender((*LOCAL, ip_network("::1"))) as sender,
    ):
        for _ in range(2):
            url = f"http://localhost:{server.port}/hook"
            assert await sender.send(url, SECRET, Message("1", b"{}")) is None
    assert cookies == [None, None]
