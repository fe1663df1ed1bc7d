"""Runs writers, readers and faults for some time, then heals everything and checks what is left."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

from aiohttp import ClientSession, ClientTimeout, TCPConnector

from schemas.caller import Role
from schemas.site import Site
from service.store import open_store
from tests.history.checks import differences, wrong_copies, wrong_counts, wrong_halls
from tests.history.cluster import Cluster, make_cluster
from tests.history.entries import Creation
from tests.history.faults import Faults
from tests.history.lists import check_lists
from tests.history.mirrors import Follower, NotAnswered, followers
from tests.history.readers import Reader
from tests.history.recording import History
from tests.history.requests import Client
from tests.history.services import DATABASE, Service, make_services
from tests.history.snapshot import NotShown, Snapshot, take_snapshot
from tests.history.world import WRITERS, World, event_body, make_world
from tests.history.writers import Writer

READERS = 2
REQUEST_SECONDS = 90
"""The service itself gives up after 30 seconds."""
SETTLING_SECONDS = 120.0
"""Copies in events are brought up to date by maintenance, which runs every few seconds."""


async def run(directory: Path, seconds: float, seed: int) -> History:
    """The history of one run; its violations are empty if all is well."""
    directory.mkdir(parents=True, exist_ok=True)
    history = History(directory / "history.jsonl")
    try:
        async with (
            processes(directory) as (cluster, services),
            session(await make_token(cluster.uri)) as http,
            session() as anonymous,
        ):

            def client(name: str, http: ClientSession = http) -> Client:
                return Client(history, http, services, Random(f"{seed} {name}"))

            world = await make_world(client("setup"))
            mirrors = followers(client("mirror"), client("anonymous mirror", anonymous), world)
            for mirror in mirrors:
                await mirror.mirror.begin(mirror.get)
            faults = Faults(cluster, services, history, Random(f"{seed} faults"))
            await work(world, faults, client, mirrors, seconds)
            await faults.heal()
            try:
                await check(history, client("check"), services)
                for mirror in mirrors:
                    await mirror.check()
            except (NotShown, NotAnswered) as refused:
                history.violation(repr(refused))
    finally:
        history.close()
    return history


@asynccontextmanager
async def processes(directory: Path) -> AsyncIterator[tuple[Cluster, list[Service]]]:
    cluster = await make_cluster(directory)
    services: list[Service] = []
    try:
        await cluster.start()
        services += make_services(directory, cluster.uri)
        for service in services:
            service.start()
        await asyncio.gather(*(service.becomes_ready() for service in services))
        yield cluster, services
    finally:
        for service in services:
            service.kill()
        cluster.kill()


async def make_token(uri: str) -> str:
    async with open_store(uri, DATABASE, Site()) as store:
        return await store.tokens.create("history", Role.ADMIN)


@asynccontextmanager
async def session(token: str = "") -> AsyncIterator[ClientSession]:
    """One connection for each request: a kept one may be closed just when it is used."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    connector, timeout = TCPConnector(force_close=True, limit=0), ClientTimeout(total=REQUEST_SECONDS)
    async with ClientSession(connector=connector, timeout=timeout, headers=headers) as http:
        yield http


async def work(
    world: World,
    faults: Faults,
    client: Callable[[str], Client],
    mirrors: Sequence[Follower],
    seconds: float,
) -> None:
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for number in range(WRITERS):
            group.create_task(Writer(client(f"writer {number}"), world, number).run(stop))
        for number in range(READERS):
            group.create_task(Reader(client(f"reader {number}"), world).run(stop))
        for mirror in mirrors:
            group.create_task(mirror.run(stop))
        injecting = group.create_task(faults.run(stop))
        await pass_time(faults, seconds)
        stop.set()
        await injecting


async def pass_time(faults: Faults, seconds: float) -> None:
    """Wait until the time is up or a violation is found; long runs print their progress."""
    history, began = faults.history, time.monotonic()
    told = began
    while time.monotonic() < began + seconds and not history.violations:
        await asyncio.sleep(0.5)
        if time.monotonic() > told + 60:
            told = time.monotonic()
            minutes, requests = (told - began) / 60, history.outcomes.total()
            print(f"{minutes:.0f} min: {len(faults.injected)} faults, {requests} requests", flush=True)


async def check(history: History, client: Client, services: list[Service]) -> None:
    await still_writes(client, services)
    shown = await settled(client, services[0])
    others = [await take_snapshot(client, service) for service in services[1:]]
    for snapshot in (shown, *others):
        name = snapshot.service.name
        for found in (
            *differences(history, snapshot),
            *wrong_copies(snapshot),
            *wrong_halls(history, snapshot),
            *wrong_counts(snapshot),
        ):
            history.violation(f"{name}: {found}")
        await check_lists(client, snapshot)
        history.expect(snapshot.without_host() == shown.without_host(), f"{name}: differs from the other")


async def settled(client: Client, service: Service) -> Snapshot:
    """Everything, once the copies are up to date or maintenance has had its time."""
    give_up = time.monotonic() + SETTLING_SECONDS
    while True:
        snapshot = await take_snapshot(client, service)
        late = [*wrong_copies(snapshot), *wrong_halls(client.history, snapshot)]
        if not late or client.history.violations or time.monotonic() > give_up:
            return snapshot
        await asyncio.sleep(2)


async def still_writes(client: Client, services: list[Service]) -> None:
    """Each service creates, updates and deletes an event again."""
    for service in services:
        body = event_body(f"Last of {service.name}")
        creation = Creation(body["title"])
        client.history.creations.append(creation)
        made = await client.send("last create", "POST", "/events", body, service=service)
        client.history.expect(made.is_done, f"{service.name}: creates nothing after the faults: {made}")
        if made.is_done:
            creation.acknowledged.append(made.body)
            path = f"/events/{made.body['id']}"
            changed = await client.send("last update", "PATCH", path, {"excerpt": "new"}, service=service)
            deleted = await client.send("last delete", "DELETE", path, service=service)
            is_done = changed.is_done and deleted.is_done
            client.history.expect(is_done, f"{service.name}: {path}: {changed.status} {deleted.status}")
