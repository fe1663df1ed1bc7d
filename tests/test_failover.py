"""While MongoDB has no primary, or one that is frozen, every request is answered before it returns."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from pymongo import MongoClient

from service.embedded import running_uri
from tests.checker import until
from tests.test_faults import Running, answer_of, running

pytestmark = pytest.mark.slow

EVENT = {"title": "Concert", "start_date": "2030-06-01 10:00:00", "end_date": "2030-06-01 12:00:00"}
LONG_SECONDS = 600
REQUESTS: dict[str, tuple[str, str, dict[str, Any] | None]] = {
    "list": ("GET", "/events", None),
    "list with another address": ("GET", "/events?start_date=2030-05-01", None),
    "search": ("GET", "/events?search=cert", None),
    "record": ("GET", "/events/{id}", None),
    "terms": ("GET", "/categories?hide_empty=false", None),
    "changes": ("GET", "/changes", None),
    "feed": ("GET", "/events.ics", None),
    "create": ("POST", "/events", EVENT | {"venue": {"venue": "Hall"}, "tags": ["new"]}),
    "update": ("PATCH", "/events/{id}", {"excerpt": "Soon"}),
    "delete": ("DELETE", "/events/{other}", None),
}


class Calls:
    """Sends all requests at once."""

    def __init__(self, service: Running, session: ClientSession) -> None:
        self._service, self._session = service, session
        self._ids: dict[str, int] = {}

    async def prepare(self) -> None:
        for name in ("id", "other"):
            async with self._session.post(f"{self._service.api}/events", json=EVENT) as created:
                self._ids[name] = (await created.json())["id"]

    async def send_all(self) -> dict[str, tuple[int, bool]]:
        """For each request: the status, and whether the response says when to retry."""
        results = await asyncio.gather(*(self._send(*request) for request in REQUESTS.values()))
        return dict(zip(REQUESTS, results, strict=True))

    async def _send(self, method: str, path: str, body: dict[str, Any] | None) -> tuple[int, bool]:
        url = self._service.api + path.format(**self._ids)
        async with self._session.request(method, url, json=body) as answer:
            await answer.read()
            return answer.status, "Retry-After" in answer.headers


def internal_client(service: Running) -> MongoClient[dict[str, Any]]:
    """A client with the rights of a member of the replica set, which the service does not have."""
    password = "".join((service.data_dir / "keyfile").read_text().split())
    return MongoClient(
        running_uri(service.data_dir), username="__system", password=password, authSource="local"
    )


@asynccontextmanager
async def stepped_down(service: Running) -> AsyncIterator[None]:
    """The only member gives up its role, and may not be elected while this is open."""
    with internal_client(service) as client:
        await asyncio.to_thread(client.admin.command, "replSetStepDown", LONG_SECONDS, force=True)
        try:
            yield
            assert not client.admin.command("hello")["isWritablePrimary"]
        finally:
            await asyncio.to_thread(client.admin.command, "replSetFreeze", 0)


@asynccontextmanager
async def frozen(service: Running) -> AsyncIterator[None]:
    """The member keeps its connections, but does nothing."""
    os.kill(service.mongod, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(service.mongod, signal.SIGCONT)


@pytest.mark.parametrize("fault", [stepped_down, frozen])
async def test_no_request_waits_for_a_primary(fault: Any, tmp_path: Path) -> None:
    async with running(tmp_path / "data") as service, ClientSession() as session:
        calls = Calls(service, session)
        await calls.prepare()
        async with fault(service):
            # The second time the caches and the state of the driver are those of the fault.
            for _ in range(2):
                assert await calls.send_all() == dict.fromkeys(REQUESTS, (503, True))
            status, _, headers = await answer_of(f"{service.root}/health/ready")
            assert (status, "Retry-After" in headers) == (503, True)
            async with session.get(
                f"{service.root}/health/live", headers={"Authorization": "Bearer of-nobody"}
            ) as live:
                assert live.status == 200

        async def is_served() -> bool:
            return {status for status, _ in (await calls.send_all()).values()} <= {200, 201, 410}

        await until(is_served)
