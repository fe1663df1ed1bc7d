"""The request log: one line for each request, which holds no secret and cannot be forged."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from config.logs import JsonFormatter
from schemas.caller import Role
from service.http import request_log
from tests.checker import until
from tests.conftest import Api, MakeApi
from tests.family import workers_of
from tests.test_faults import Running, running
from tests.wire import connected

LINE_FORMAT = re.compile(r"(\S+) (\S+) (\d+) (\d+) B (\d+\.\d\d) ms (\S+) ([0-9a-f]{16})")


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[..., Awaitable[list[str]]]:
    """What was logged of requests, once there are so many lines: a line is written after its answer."""
    for name in ("kalends", "aiohttp"):
        caplog.set_level(logging.DEBUG, name)

    async def wait(number: int) -> list[str]:
        def logged() -> list[str]:
            return [one.getMessage() for one in caplog.records if LINE_FORMAT.fullmatch(one.getMessage())]

        async def are_there() -> bool:
            return len(logged()) >= number

        await until(are_there)
        return logged()

    return wait


Lines = Callable[[int], Awaitable[list[str]]]


async def test_a_request_is_one_line(lines: Lines, api: Api) -> None:
    await api.get("/events", search="secret")
    (line,) = await lines(1)
    found = LINE_FORMAT.fullmatch(line)
    assert found
    assert found.groups()[:4] == ("GET", "/calendar/events/v1/events", "200", str(len(api.text)))
    assert float(found[5]) > 0
    assert (found[6], found[7]) == ("open", api.headers["X-Request-Id"])


async def test_every_kind_of_answer_is_logged(
    lines: Lines, make_api: MakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = await make_api(auth="token", rate_limit=6)
    viewer = await api.store.tokens.create("me", Role.VIEWER)

    async def broken(*_: Any) -> None:
        raise RuntimeError("a bug")

    await api.send("HEAD", "/events")
    await api.send("GET", "/events", headers={"If-None-Match": "*"})
    await api.send("GET", "/nowhere")
    await api.send("GET", "/events", headers={"Authorization": "Bearer wrong"})
    await api.send("POST", "/tags", {}, headers={"Authorization": f"Bearer {viewer}"})
    monkeypatch.setattr(api.store, "page", broken)
    await api.get("/venues")
    await api.get("/events")
    shown = [LINE_FORMAT.fullmatch(line).group(1, 2, 3, 6) for line in await lines(7)]  # type: ignore[union-attr]
    root = "/calendar/events/v1"
    assert shown == [
        ("HEAD", f"{root}/events", "200", "public"),
        ("GET", f"{root}/events", "304", "public"),
        ("GET", f"{root}/nowhere", "404", "-"),
        ("GET", f"{root}/events", "401", "-"),
        ("POST", f"{root}/tags", "403", "viewer"),
        ("GET", f"{root}/venues", "500", "public"),
        ("GET", f"{root}/events", "429", "-"),
    ]
    assert [LINE_FORMAT.fullmatch(line)[4] for line in (await lines(7))[:2]] == ["0", "0"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        (b"GET /a%0aGET%20/forged?password=hidden HTTP/1.1", "GET /a%0aGET%20/forged 404"),
        (b"GET /\xc2\x85\xff HTTP/1.1", "- - 400"),
        (b"GET http://user:hidden@localhost/x?hidden HTTP/1.1", "GET /x 404"),
        (b"CONNECT hidden:443 HTTP/1.1", "CONNECT - 404"),
        (b"FOO /x?hidden HTTP/1.1", "FOO /x 404"),
        (b"GET /" + b"x" * 1000 + b" HTTP/1.1", f"GET /{'x' * 499} 404"),
        (b"GET /" + b"x" * 9000 + b" HTTP/1.1", "- - 414"),
        (b"hidden", "- - 400"),
    ],
)
async def test_a_path_is_logged_as_it_was_sent_and_a_query_is_not(
    lines: Lines, api: Api, caplog: pytest.LogCaptureFixture, sent: bytes, shown: str
) -> None:
    assert api.client.port
    async with connected(api.client.port) as wire:
        await wire.send(sent + b"\r\nHost: localhost\r\nAuthorization: Bearer hidden\r\n\r\n")
        await wire.answer()
    (line,) = await lines(1)
    assert line.startswith(shown + " ")
    assert "hidden" not in caplog.text
    assert "Traceback" not in caplog.text


def test_characters_that_end_lines_are_escaped() -> None:
    class Odd(dict[str, Any]):
        rel_url = type("Url", (), {"raw_path": "/a\n\x85\u2028\x1b[31mb"})

    assert request_log.path_of(Odd()) == "/a\\x0a\\x85\\x2028\\x1b[31mb"  # type: ignore[arg-type]


async def test_health_checks_are_only_logged_when_debugging(
    lines: Lines, api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    await api.get("//health/live")
    await lines(1)
    assert [one.levelname for one in caplog.records if "/health/" in one.getMessage()] == ["DEBUG"]


async def test_the_log_can_be_turned_off(lines: Lines, make_api: MakeApi) -> None:
    silent, loud = await make_api(access_log="off"), await make_api()
    await silent.get("/events")
    await loud.get("/venues")
    assert [line.split()[1] for line in await lines(1)] == ["/calendar/events/v1/venues"]


@pytest.mark.parametrize("path", ["tags", "nowhere"])
async def test_a_client_that_hangs_up_in_its_body_is_no_error(
    lines: Lines, api: Api, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    assert api.client.port
    async with connected(api.client.port) as wire:
        head = f"POST {api.store.site.namespace}/{path} HTTP/1.1\r\nHost: localhost\r\n"
        await wire.send(f"{head}Content-Length: 1000\r\n\r\n{{".encode())
        await asyncio.sleep(0.2)
    (line,) = await lines(1)
    assert LINE_FORMAT.fullmatch(line)[3] == ("499" if path == "tags" else "404")  # type: ignore[index]
    assert await api.ids("tags") == []
    assert [one.getMessage() for one in caplog.records if one.levelno > logging.INFO] == []


async def test_a_body_that_breaks_on_its_way_is_answered_once(
    lines: Lines, api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    assert api.client.port
    for path, status in (("tags", 400), ("nowhere", 404)):
        async with connected(api.client.port) as wire:
            head = f"POST {api.store.site.namespace}/{path} HTTP/1.1\r\nHost: localhost\r\n"
            await wire.send(f"{head}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n".encode())
            await asyncio.sleep(0.2)
            await wire.send(b"zz\r\n")
            answer = await wire.answer()
            assert (answer.status, json.loads(answer.body)["data"]["status"]) == (status, status)
            assert answer.is_last is (status == 400)
            await wire.ends()
    assert len(await lines(2)) == 2
    assert [one.getMessage() for one in caplog.records if one.levelno > logging.INFO] == []


def test_json_has_the_fields_and_tracebacks_on_one_line() -> None:
    record = logging.makeLogRecord(
        {"name": "x", "msg": "a\n%s", "args": ("ü\udcff",), "levelname": "INFO", "fields": {"status": 200}}
    )
    error = ValueError("broken")
    record.exc_info = (ValueError, error, None)
    text = JsonFormatter().format(record)
    assert "\n" not in text
    said = json.loads(text)
    assert (said["logger"], said["level"], said["message"], said["status"]) == (
        "x",
        "info",
        "a\nü\udcff",
        200,
    )
    assert said["traceback"].endswith("ValueError: broken")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", said["time"])


async def asked(service: Running) -> str:
    """One request, and the id of its answer."""
    async with ClientSession() as session, session.get(f"{service.api}/events?password=hidden") as answer:
        return answer.headers["X-Request-Id"]


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
async def test_a_process_logs_json(tmp_path: Path, mongodb_uri: str, worker_id: str, workers: str) -> None:
    settings = {"MONGODB_URI": mongodb_uri, "DATABASE": f"test_{worker_id}", "WORKERS": workers}
    async with running(tmp_path / "data", LOG_FORMAT="json", LOG_LEVEL="debug", **settings) as service:
        id = await asked(service)

        async def is_logged() -> bool:
            return id in service.errors.read_text()

        await until(is_logged)
        said = [json.loads(line) for line in service.errors.read_text().splitlines()]
    (line,) = (one for one in said if one.get("request_id") == id)
    assert {name: line[name] for name in ("level", "logger", "method", "path", "status", "role")} == {
        "level": "info",
        "logger": "kalends.requests",
        "method": "GET",
        "path": "/calendar/events/v1/events",
        "status": 200,
        "role": "open",
    }
    assert line["bytes"] > 0
    assert line["milliseconds"] > 0
    assert "hidden" not in service.errors.read_text()


@pytest.mark.slow
async def test_the_manager_of_the_workers_logs_json_too(
    tmp_path: Path, mongodb_uri: str, worker_id: str
) -> None:
    settings = {"MONGODB_URI": mongodb_uri, "DATABASE": f"test_{worker_id}", "WORKERS": "2"}
    async with running(tmp_path / "data", LOG_FORMAT="json", **settings) as service:
        os.kill(workers_of(service).pop(), signal.SIGKILL)

        async def is_logged() -> bool:
            return "gunicorn" in service.errors.read_text()

        await until(is_logged)
        said = [json.loads(line) for line in service.errors.read_text().splitlines()]
    assert any(one["logger"] == "gunicorn.error" and "SIGKILL" in one["message"] for one in said)


@pytest.mark.slow
async def test_a_process_logs_no_request_if_told_so(tmp_path: Path, mongodb_uri: str, worker_id: str) -> None:
    settings = {"MONGODB_URI": mongodb_uri, "DATABASE": f"test_{worker_id}", "ACCESS_LOG": "off"}
    async with running(tmp_path / "data", **settings) as service:
        await asked(service)
        service.process.terminate()
        await service.end()
        assert "/events" not in service.errors.read_text()


@pytest.mark.parametrize("kind", ["shed", "malformed", "page", "stream", "metrics"])
async def test_every_answer_has_the_id_of_its_line(lines: Lines, make_api: MakeApi, kind: str) -> None:
    api = await make_api(max_concurrent=1)
    assert api.client.port
    root = api.store.site.namespace
    path = {"page": "/events/month/", "stream": f"{root}/events.ics", "metrics": "/metrics"}.get(
        kind, f"{root}/events"
    )
    async with connected(api.client.port) as busy, connected(api.client.port) as wire:
        if kind == "shed":
            await busy.begin(f"{root}/tags", {"name": "Slow"})
        request = b"nonsense\r\n\r\n" if kind == "malformed" else f"GET {path} HTTP/1.0\r\n\r\n".encode()
        await wire.send(request)
        head = (await wire.reader.readuntil(b"\r\n\r\n")).decode()
        status = {"shed": "503", "malformed": "400"}.get(kind, "200")
        assert head.split()[1] == status
        (line,) = await lines(1)
    sent = re.search(r"(?im)^X-Request-Id: (\w+)", head)
    assert sent
    assert line.endswith(f" {sent[1]}")
    assert line.split()[2] == status
