"""Creations with an Idempotency-Key while the service is killed, and while the primary steps down."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientError, ClientSession

from schemas.site import Site
from service.store import Store, open_store
from tests.checker import agrees, until
from tests.history.cluster import make_cluster
from tests.history.processes import free_ports
from tests.history.services import REPOSITORY, Service
from tests.test_concurrency import body_of_event

pytestmark = pytest.mark.slow

MAX_ATTEMPTS = 200


@contextmanager
def started(directory: Path, uri: str, database: str, *words: str) -> Iterator[Service]:
    """A service process in open mode; `words` are its command after `python -m`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KALENDS_")}
    (port,) = free_ports(1)
    settings = {"MONGODB_URI": uri, "DATABASE": database, "PORT": str(port), "AUTH": "open"}
    environment = kept | {f"KALENDS_{name}": value for name, value in settings.items()}
    environment["PYTHONPATH"] = str(REPOSITORY)
    line = [sys.executable, "-m", *words]
    service = Service(words[0], port, directory / f"{words[0]}-{port}.log", line, environment)
    service.start()
    try:
        yield service
    finally:
        service.kill()


async def post(session: ClientSession, service: Service, body: dict[str, Any], key: str) -> tuple[int, Any]:
    headers = {"Idempotency-Key": key}
    async with session.post(f"{service.api}/events", json=body, headers=headers) as answer:
        return answer.status, await answer.json()


async def has_ended(service: Service) -> bool:
    return not service.is_running


async def stored(store: Store) -> dict[str, int]:
    return {name: await store.database[name].count_documents({}) for name in ("events", "venues", "tags")}


@pytest.mark.parametrize(("moment", "number"), [("insert", 0), ("commitTransaction", 1)])
async def test_a_service_that_is_killed_before_it_answers(
    tmp_path: Path, mongodb_uri: str, worker_id: str, moment: str, number: int
) -> None:
    """The record and its key are stored both or not at all; then the same request creates it, or finds it."""
    database = f"killed_{moment}_{worker_id}"
    body = body_of_event("Once", venue={"venue": "Hall"}, tags=["New"])
    async with open_store(mongodb_uri, database, Site()) as store, ClientSession() as session:
        with started(tmp_path, mongodb_uri, database, "tests.dying_service", moment, "serve") as service:
            await service.becomes_ready()
            with pytest.raises(ClientError):
                await post(session, service, body, "abc")
            await until(partial(has_ended, service))
        assert await stored(store) == dict.fromkeys(("events", "venues", "tags"), number)
        with started(tmp_path, mongodb_uri, database, "service", "serve") as service:
            await service.becomes_ready()
            ids = [await created(session, service, body, "abc") for _ in range(2)]
        assert len(set(ids)) == 1
        assert await stored(store) == {"events": 1, "venues": 1, "tags": 1}
        await agrees(store)
        await store.client.drop_database(database)


async def created(session: ClientSession, service: Service, body: dict[str, Any], key: str) -> int:
    """The ID of an event that is created with as many requests as it takes."""
    for _ in range(MAX_ATTEMPTS):
        with suppress(ClientError):
            status, event = await post(session, service, body, key)
            assert status in (201, 503), event
            if status == 201:
                return int(event["id"])
        await asyncio.sleep(0.2)
    raise AssertionError(f"{key}: never created")


async def test_the_primary_steps_down_during_creations(tmp_path: Path) -> None:
    cluster = await make_cluster(tmp_path)
    try:
        await cluster.start()
        with started(tmp_path, cluster.uri, "steps", "service", "serve") as service:
            await service.becomes_ready()
            ids, turn = set[int](), asyncio.Semaphore(8)

            async def create(number: int) -> None:
                venue, tags = {"venue": f"Hall {number % 7}"}, [f"tag {number % 5}"]
                body = body_of_event(f"Event {number}", venue=venue, tags=tags)
                async with turn:
                    ids.add(await created(session, service, body, f"key-{number}"))

            async with ClientSession() as session:
                tasks = [asyncio.create_task(create(number)) for number in range(300)]
                for number in (40, 120):
                    while len(ids) < number:
                        await asyncio.sleep(0.05)
                    await cluster.step_down()
                await asyncio.gather(*tasks)
            async with open_store(cluster.uri, "steps", Site()) as store:
                assert len(ids) == 300
                linked = await store.database["events"].distinct("venue._id")
                assert await stored(store) == {"events": 300, "venues": len(linked), "tags": 5}
                await agrees(store)
    finally:
        cluster.kill()
