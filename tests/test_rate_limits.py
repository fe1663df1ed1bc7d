"""Limits: requests a minute, requests at a time, slow bodies, guessed passwords."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from config import SettingError, Settings, read_settings
from handlers import bodies
from service.http.acceptor import Acceptor
from service.http.rate_limits import (
    MAX_TRACKED_CLIENTS,
    MAX_WRONG_PASSWORDS,
    FixedWindow,
    client_key,
    client_of,
)
from service.process import serve
from tests.conftest import MakeApi


async def test_a_client_has_so_many_requests_a_minute(make_api: MakeApi) -> None:
    api = await make_api(rate_limit=3)
    for left in ("2", "1", "0"):
        assert (await api.get("/events"))[0] == 200
        assert (api.headers["RateLimit-Limit"], api.headers["RateLimit-Remaining"]) == ("3", left)
    status, problem = await api.get("/events")
    assert (status, problem["code"]) == (429, "rest_too_many_requests")
    assert 0 < int(api.headers["Retry-After"]) <= 60
    assert int(api.headers["RateLimit-Reset"]) == int(api.headers["Retry-After"])
    assert (await api.get("//health/live"))[0] == 200


async def test_only_a_trusted_proxy_says_who_the_client_is(make_api: MakeApi) -> None:
    api = await make_api(rate_limit=1)
    assert (await api.send("GET", "/doc", headers={"X-Forwarded-For": "192.0.2.1"}))[0] == 200
    assert (await api.send("GET", "/doc", headers={"X-Forwarded-For": "192.0.2.2"}))[0] == 429
    settings = read_settings({"KALENDS_TRUSTED_PROXIES": "127.0.0.0/8, ::1"}, {})
    api = await make_api(rate_limit=1, trusted_proxies=settings.trusted_proxies)
    for client in ("192.0.2.1", "192.0.2.2", "2001:db8::1"):
        assert (await api.send("GET", "/doc", headers={"X-Forwarded-For": client}))[0] == 200
    # What a client puts before the proxy's own word does not count.
    assert (await api.send("GET", "/doc", headers={"X-Forwarded-For": "198.51.100.7, 192.0.2.1"}))[0] == 429
    lines = CIMultiDict([("X-Forwarded-For", "198.51.100.7"), ("X-Forwarded-For", "192.0.2.1")])
    async with api.client.get(f"{api.store.site.namespace}/doc", headers=lines) as answer:
        assert answer.status == 429


@pytest.mark.parametrize("sent", ["", "garbage", ",,,", "1.2.3.4, garbage", "127.0.0.1, 127.0.0.1"])
def test_odd_forwarding_headers_are_harmless(sent: str) -> None:
    settings = read_settings({"KALENDS_TRUSTED_PROXIES": "127.0.0.1"}, {})
    request = make_mocked_request("GET", "/", headers={"X-Forwarded-For": sent})
    assert isinstance(client_of(request, settings), str)


@pytest.mark.parametrize(
    ("sent", "key"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("192.0.2.1:5678", "192.0.2.1"),
        ("192.0.2.1:5678, 127.0.0.1:80", "192.0.2.1"),
        ("[2001:db8::1]:80", "2001:db8::/64"),
        ("[2001:db8::1]", "2001:db8::/64"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::80", "2001:db8::/64"),
        ("[::ffff:192.0.2.1]:80", "192.0.2.1"),
    ],
)
def test_a_client_is_the_same_on_every_port(sent: str, key: str) -> None:
    settings = read_settings({"KALENDS_TRUSTED_PROXIES": "127.0.0.1"}, {})
    request = make_mocked_request("GET", "/", headers={"X-Forwarded-For": sent})
    assert client_of(request.clone(remote="127.0.0.1"), settings) == key


def test_counting_clients_takes_bounded_memory() -> None:
    window = FixedWindow()
    for number in range(MAX_TRACKED_CLIENTS + 10):
        window.usage(str(number), 1)
    assert len(window.counts) <= MAX_TRACKED_CLIENTS


def test_a_client_that_asks_on_is_not_forgotten_for_many_others() -> None:
    window = FixedWindow()
    for number in range(MAX_TRACKED_CLIENTS + 10):
        window.usage(str(number), 1)
        used = window.usage("busy", 1).used
    assert used == MAX_TRACKED_CLIENTS + 10


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
    ],
)
def test_a_network_of_ipv6_is_one_client(one: str, other: str, are_same: bool) -> None:
    """A household has a /64, and a single machine may use any of its addresses."""
    assert (client_key(one) == client_key(other)) is are_same


async def test_more_requests_than_can_be_served_are_refused_at_once(
    make_api: MakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = await make_api(max_concurrent=2)
    waiting, goes_on = asyncio.Semaphore(0), asyncio.Event()
    page = api.store.page

    async def slow(*args: Any) -> Any:
        waiting.release()
        await goes_on.wait()
        return await page(*args)

    monkeypatch.setattr(api.store, "page", slow)
    addresses = [f"{api.store.site.namespace}/events?per_page={number}" for number in (1, 2)]
    begun = [asyncio.create_task(api.client.get(address)) for address in addresses]
    for _ in begun:
        await waiting.acquire()
    status, problem = await api.get("/events")
    assert (status, problem["code"], "Retry-After" in api.headers) == (503, "rest_unavailable", True)
    assert (await api.get("//health/live"))[0] == 200
    goes_on.set()
    for answer in await asyncio.gather(*begun):
        assert answer.status == 200
        answer.release()
    assert (await api.get("/events"))[0] == 200


async def test_a_body_that_does_not_come_is_given_up(
    make_api: MakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "BODY_TIMEOUT_SECONDS", 0.2)
    api = await make_api()
    reader, writer = await asyncio.open_connection(api.client.host, api.client.port)
    head = f"POST {api.store.site.namespace}/tags HTTP/1.1\r\nHost: localhost\r\n"
    writer.write(f"{head}Content-Length: 1000\r\n\r\n{{".encode())
    async with asyncio.timeout(30):
        answer = await reader.readuntil(b"}}")
    assert b" 408 " in answer.splitlines()[0]
    assert b"\r\nConnection: close\r\n" in answer
    assert b"rest_request_timeout" in answer
    writer.close()
    await writer.wait_closed()


async def test_a_client_that_does_not_read_its_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "CLIENT_READ_TIMEOUT_MS", 1000)

    async def large(request: web.Request) -> web.Response:
        return web.Response(body=b"x" * 20_000_000)

    app = web.Application()
    app.router.add_get("/", large)
    runner = web.AppRunner(app)
    await runner.setup()
    with serve.create_listener(replace(Settings(), port=0)) as taken:
        acceptor = Acceptor(taken, runner.server)
        acceptor.open()
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(taken.getsockname())
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            async with asyncio.timeout(60):
                while not runner.server.connections:
                    await asyncio.sleep(0.05)
                while runner.server.connections:
                    await asyncio.sleep(0.05)
        await acceptor.close()
        await runner.cleanup()


async def test_wrong_passwords_are_counted_and_right_ones_are_not(make_api: MakeApi) -> None:
    api = await make_api()
    event, other = [await api.event(password="right") for _ in range(2)]
    path = f"/events/{event['id']}"
    for _ in range(3):
        assert (await api.get(path, password="right"))[0] == 200
        assert (await api.get(path))[0] == 403
    for _ in range(MAX_WRONG_PASSWORDS):
        assert (await api.get(path, password="wrong"))[0] == 403
    for password in ("wrong", "right"):
        status, problem = await api.get(path, password=password)
        assert (status, problem["code"], "Retry-After" in api.headers) == (
            429,
            "rest_too_many_requests",
            True,
        )
    assert (await api.get(f"/events/{other['id']}", password="right"))[0] == 200


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("CORS_ORIGINS", "example.org"),
        ("CORS_ORIGINS", "https://a.example.org/path"),
        ("CORS_ORIGINS", "https://*.example.org"),
        ("ACCESS_LOG", "maybe"),
        ("LOG_FORMAT", "xml"),
        ("TRUSTED_PROXIES", "everyone"),
        ("TRUSTED_PROXIES", "10.0.0.0/33"),
        ("RATE_LIMIT", "-1"),
        ("MAX_CONCURRENT", "0"),
    ],
)
def test_bad_limits_are_refused(name: str, text: str) -> None:
    with pytest.raises(SettingError, match=f"KALENDS_{name} must be"):
        read_settings({f"KALENDS_{name}": text}, {})


def test_everybody_may_read_and_some_may_write() -> None:
    settings = read_settings({"KALENDS_CORS_ORIGINS": "*, https://A.example.org/"}, {})
    assert settings.cors_origins == ("*", "https://a.example.org")
    assert read_settings(settings.variables(), {}) == settings


def test_settings_survive_the_way_to_a_worker() -> None:
    settings = read_settings(
        {
            "KALENDS_TRUSTED_PROXIES": "10.0.0.0/8,::1",
            "KALENDS_CORS_ORIGINS": "none",
            "KALENDS_ALIASES": "/a,/b/c",
            "KALENDS_LOG_FORMAT": "JSON",
            "KALENDS_ACCESS_LOG": "off",
        },
        {},
    )
    assert (settings.log_format, settings.access_log) == ("json", "off")
    assert read_settings(settings.variables(), {}) == settings
    assert read_settings(replace(Settings(), port=1).variables(), {}) == replace(Settings(), port=1)


async def test_many_passwords_cannot_be_tried_at_once(make_api: MakeApi) -> None:
    api = await make_api()
    path = f"/events/{(await api.event(password='right'))['id']}"
    tried = [api.get(path, password=f"wrong {number}") for number in range(MAX_WRONG_PASSWORDS + 5)]
    statuses = sorted([status for status, _ in await asyncio.gather(*tried)])
    assert statuses == [403] * MAX_WRONG_PASSWORDS + [429] * 5
