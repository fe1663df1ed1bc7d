"""Fixtures: one real mongod for the session, an empty database and a client for each test."""

from __future__ import annotations

import asyncio
import zoneinfo
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import uvloop
from aiohttp.test_utils import TestClient, TestServer

from config import Settings
from schemas.caller import Role
from schemas.site import Site
from service.app import create_app
from service.changes.feed import CHECKPOINT
from service.embedded import embedded_mongod
from service.http.protocol import Runner
from service.mongo import client
from service.mongo.write_clock import read_clock
from service.process.serve import ABORT_SECONDS
from service.site import site_of
from service.store import Store, open_store

zoneinfo.reset_tzpath(())  # the rules of tzdata, as the service: those of the machine may be older


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Tests run on the event loop that serves."""
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="session", autouse=True)
def _home_of_data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test touches the data of whoever runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _patient_driver() -> Iterator[None]:
    """A busy machine may stand still for seconds; the driver would take that for a failure of MongoDB."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "HEARTBEAT_TIMEOUT_MS", 20_000)
        yield


@pytest.fixture(scope="session")
def mongodb_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with asyncio.Runner() as runner:
        mongod = embedded_mongod(tmp_path_factory.mktemp("mongod") / "data")
        yield runner.run(mongod.__aenter__())
        runner.run(mongod.__aexit__(None, None, None))


class Api:
    """Speaks HTTP to the service and answers (status, body). A path of `//x` is meant from the root."""

    def __init__(self, client: TestClient[Any, Any], store: Store, token: str = "") -> None:
        self.client = client
        self.store = store
        self.token = token
        self.headers: Any = {}
        self.text = ""

    async def send(self, method: str, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        headers |= options.pop("headers", {})
        if body is not None:
            options["json"] = body
        address = path[1:] if path.startswith("//") else self.store.site.namespace + path
        async with self.client.request(method, address, headers=headers, **options) as answer:
            self.headers, self.text = answer.headers, await answer.text()
            is_json = answer.content_type == "application/json"
            return answer.status, await answer.json() if is_json else self.text

    async def get(self, path: str, **query: Any) -> tuple[int, Any]:
        return await self.send("GET", path, params=query or None)

    async def post(self, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
        return await self.send("POST", path, body, **options)

    async def patch(self, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
        return await self.send("PATCH", path, body, **options)

    async def delete(self, path: str, **options: Any) -> tuple[int, Any]:
        return await self.send("DELETE", path, **options)

    async def made(self, plural: str, **body: Any) -> Any:
        """A record that was created; anything but 201 fails the test."""
        status, record = await self.post(f"/{plural}", body)
        assert status == 201, record
        return record

    async def event(self, title: str = "Event", **body: Any) -> Any:
        """An event next year, with whatever else is given."""
        times = {"start_date": "2027-06-01 10:00:00", "end_date": "2027-06-01 12:00:00"}
        return await self.made("events", title=title, **times | body)

    async def ids(self, plural: str, **query: Any) -> list[int]:
        """The ids on a page of a list; anything but 200 fails the test."""
        status, page = await self.get(f"/{plural}", **query)
        assert status == 200, page
        return [record["id"] for record in page[plural]]


class Served(TestServer):
    """aiohttp's server for tests, with the connections that the service itself uses."""

    __test__ = False

    def __init__(self, settings: Settings, store: Store) -> None:
        super().__init__(create_app(settings, store))
        self.settings = settings

    async def _make_runner(self, **options: Any) -> Runner:
        options |= {"handler_cancellation": False, "shutdown_timeout": ABORT_SECONDS}
        return Runner(self.app, self.settings, **options)


MakeApi = Callable[..., Awaitable[Api]]


@pytest.fixture
async def store(mongodb_uri: str, worker_id: str) -> AsyncIterator[Store]:
    """A store on an empty database; its indexes are kept from test to test."""
    async with open_store(mongodb_uri, f"test_{worker_id}", Site()) as store:
        for name in await store.database.list_collection_names():
            if name != "meta":
                await store.database[name].delete_many({})
        # Ids begin at 1 again: writes of earlier tests must not be counted in records of this one.
        await skip_changes(store)
        yield store


async def skip_changes(store: Store) -> None:
    """Move the checkpoint of the change log to now: earlier changes are neither counted nor logged."""
    now = read_clock(store.database.delegate).time
    await store.database["meta"].update_one({"_id": CHECKPOINT}, {"$set": {"at": now}})


@pytest.fixture
async def make_api(aiohttp_client: Any, store: Store) -> AsyncIterator[MakeApi]:
    """Makes an API with settings of its own: `await make_api(timezone="Europe/Paris")`."""
    made: list[Store] = []

    async def make(token: str = "", **settings: Any) -> Api:
        chosen = replace(Settings(), **settings)
        own = Store(store.database, site_of(chosen))
        own.started = True
        made.append(own)
        return Api(await aiohttp_client(Served(chosen, own)), own, token)

    yield make
    for one in made:
        await one.close()


@pytest.fixture
async def api(make_api: MakeApi) -> Api:
    """The API as a developer starts it: open, in UTC."""
    return await make_api()


@pytest.fixture
async def pair(
    make_api: MakeApi, aiohttp_client: Any, mongodb_uri: str, store: Store
) -> AsyncIterator[tuple[Api, Api]]:
    """Two services on one database, each with a client and memory of its own, as two processes have."""
    async with open_store(mongodb_uri, store.database.name, Site()) as other:
        yield await make_api(), Api(await aiohttp_client(Served(Settings(), other)), other)


@pytest.fixture
async def roles(make_api: MakeApi, store: Store) -> dict[str, Api]:
    """The same API in token mode, once for each role; `public` has no token."""
    public = await make_api(auth="token")
    tokens = {role.value: await store.tokens.create(role.value, role) for role in Role}
    return {"public": public} | {name: Api(public.client, store, token) for name, token in tokens.items()}
