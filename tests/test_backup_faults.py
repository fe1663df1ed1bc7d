"""Restores under running services, and dumps and restores that are killed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from schemas.errors import UnderRestore
from schemas.site import Site
from schemas.values.dates import EPOCH
from service.backup import loading, restoring
from service.backup.format import BackupError
from service.changes.restores import RestoreUnderWay
from service.embedded import running_uri
from service.store import Store, open_store
from service.store.links import fanout
from tests.backups import Backups, backups_of, fill_all
from tests.checker import agrees
from tests.conftest import Api
from tests.test_faults import REPOSITORY, environment, running

pytestmark = pytest.mark.slow

KILLED = -9
MEANWHILE = {"title": "Meanwhile", "start_date": "2027-06-01 10:00:00", "end_date": "2027-06-01 12:00:00"}
DYING = """
import asyncio, os, signal, sys
from service.backup import {module} as module
async def wait():
    await asyncio.sleep(600)
    yield
def die(*arguments, **options):
    os.kill(os.getpid(), signal.{signal})
    return wait()
module.{function} = die
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
from service.__main__ import main
main()
"""
"""The command in a process that is killed where it calls a function, or told to stop: then it waits there."""


@pytest.fixture
async def backups(
    store: Store, mongodb_uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], aiohttp_client: Any
) -> AsyncIterator[Backups]:
    async with backups_of(store, mongodb_uri, tmp_path, capsys, aiohttp_client) as made:
        yield made


def killed_at(backups: Backups, place: str, database: str, *words: str, signal: str = "SIGKILL") -> int:
    module, _, function = place.rpartition(".")
    code = DYING.format(module=module, function=function, signal=signal)
    settings = environment(backups.directory, MONGODB_URI=backups.uri, DATABASE=database)
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, cwd=REPOSITORY, env=settings, check=False).returncode


async def lease_expires(store: Store) -> None:
    """As if the 30 seconds had passed after which the lease of a killed process expires."""
    await store.database["meta"].update_one({"_id": "restore"}, {"$set": {"until": EPOCH}})


async def contents(store: Store) -> dict[str, list[Any]]:
    names = await store.database.list_collection_names(
        filter={"name": {"$not": {"$regex": "^(restore|meta)"}}}
    )
    return {name: await store.database[name].find().sort("_id", 1).to_list(None) for name in sorted(names)}


# Killed


async def test_a_killed_dump_leaves_no_file_that_looks_whole(api: Api, backups: Backups) -> None:
    await fill_all(api)
    path = backups.directory / "all.dump"
    assert killed_at(backups, "dumping.read_ahead", backups.source, "dump", str(path)) == KILLED
    (left,) = backups.directory.glob(".*")
    assert (left.suffix, path.exists()) == (".part", False)
    await backups.dump()
    assert path.exists()


async def test_a_dump_that_is_told_to_stop_leaves_no_file(api: Api, backups: Backups) -> None:
    await fill_all(api)
    words = ("dump", str(backups.directory / "all.dump"))
    for signal, status in (("SIGTERM", 143), ("SIGINT", 130)):
        ended = killed_at(backups, "dumping.read_ahead", backups.source, *words, signal=signal)
        assert (ended, list(backups.directory.glob("*.dump*"))) == (status, [])


@pytest.mark.parametrize("place", ["loading.insert", "restoring.create_loaded_indexes", "restoring.mark"])
async def test_a_restore_that_is_killed_before_it_replaces_anything_changes_nothing(
    api: Api, backups: Backups, place: str
) -> None:
    await fill_all(api)
    path = await backups.dump()
    later = await api.event("Later")
    await agrees(api.store)
    before = await contents(api.store)
    assert killed_at(backups, place, backups.source, "restore", str(path), "--replace") == KILLED
    assert await contents(api.store) == before
    assert (await api.get(f"/events/{later['id']}"))[0] == 200
    await lease_expires(api.store)
    await backups.restore(path, into=backups.source, replace=True)
    assert (await api.get(f"/events/{later['id']}"))[0] == 404
    left = await api.store.database.list_collection_names(filter={"name": {"$regex": "^restore"}})
    assert left == []


async def loaded(store: Store) -> list[str]:
    """The collections that a restore has loaded, and not renamed or dropped."""
    return await store.database.list_collection_names(filter={"name": {"$regex": r"^restore\."}})


@pytest.mark.parametrize("place", ["loading.insert", "restoring.mark"])
async def test_a_restore_that_stood_still_leaves_the_result_of_the_next_one_alone(
    api: Api, backups: Backups, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """For longer than its lease, so that the next one has begun and ended when it goes on."""
    await fill_all(api)
    path = await backups.dump()
    later = await api.event("Later")
    module, function = (
        {"loading": loading, "restoring": restoring}[place.split(".", maxsplit=1)[0]],
        place.split(".")[1],
    )
    original, loop, done = getattr(module, function), asyncio.get_running_loop(), []

    async def restored_by_another() -> None:
        await lease_expires(api.store)
        await backups.restore(path, into=backups.source, replace=True)

    def insert(*arguments: Any) -> Any:
        if not done:
            done.append(1)
            asyncio.run_coroutine_threadsafe(restored_by_another(), loop).result(120)
        return original(*arguments)

    async def mark(database: Any) -> None:
        await original(database)
        if not done:
            done.append(1)
            await restored_by_another()

    monkeypatch.setattr(module, function, mark if function == "mark" else insert)
    with pytest.raises(BackupError, match="another restore has begun"):
        await backups.restore(path, into=backups.source, replace=True)
    assert (await api.get(f"/events/{later['id']}"))[0] == 404
    assert await loaded(api.store) == []
    await agrees(api.store)


@pytest.mark.parametrize(("signal", "status"), [("SIGTERM", 143), ("SIGINT", 130)])
async def test_a_restore_that_is_told_to_stop_leaves_nothing(
    api: Api, backups: Backups, signal: str, status: int
) -> None:
    await fill_all(api)
    path = await backups.dump()
    await agrees(api.store)
    before = await contents(api.store)
    words = ("restore", str(path), "--replace")
    assert killed_at(backups, "loading.read_ahead", backups.source, *words, signal=signal) == status
    assert (await contents(api.store), await loaded(api.store)) == (before, [])
    assert await api.store.database["meta"].find_one({"_id": "restore"}) is None


async def test_a_batch_that_is_inserted_while_a_restore_stops_is_dropped_too(
    api: Api, backups: Backups, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill_all(api)
    path = await backups.dump()
    insert, has_begun, has_ended = loading.insert, threading.Event(), threading.Event()

    def insert_late(*arguments: Any) -> None:
        has_begun.set()
        time.sleep(0.5)
        insert(*arguments)
        has_ended.set()

    monkeypatch.setattr(loading, "insert", insert_late)
    restoring = asyncio.create_task(backups.restore(path, into=backups.source, replace=True))
    await asyncio.to_thread(has_begun.wait, 60)
    restoring.cancel()
    await asyncio.gather(restoring, return_exceptions=True)
    await asyncio.to_thread(has_ended.wait, 60)
    assert restoring.cancelled()
    assert await loaded(api.store) == []


@pytest.mark.parametrize("place", ["switching.raise_counters", "switching.prepare", "restoring.unmark"])
async def test_a_restore_that_is_killed_while_it_replaces_records_must_be_repeated(
    api: Api, backups: Backups, place: str
) -> None:
    await fill_all(api)
    path = await backups.dump()
    await backups.restore(path)
    async with open_store(backups.uri, backups.target, Site()) as other:
        service = await backups.open(other)
        shown = await service.get("/events", start_date="2000-01-01")
        assert killed_at(backups, place, backups.target, "restore", str(path), "--replace") == KILLED
        for address in ("/events", "/venues", "/tags/1", "/events.ics", "//", "/changes", "//health/ready"):
            assert (await service.get(address))[0] == 503, address
        assert (await service.get("//health/live"))[0] == 200
        with pytest.raises(UnderRestore):
            await other.maintain()
        with pytest.raises(RestoreUnderWay, match="run `kalends restore` again"):
            async with open_store(backups.uri, backups.target, Site()):
                pass
        await lease_expires(other)
        await backups.restore(path)  # not --replace again
        assert await service.get("/events", start_date="2000-01-01") == shown
        assert (await service.get("//health/ready"))[0] == 200
        await agrees(other)


async def test_collections_of_others_with_a_similar_name_stay(api: Api, backups: Backups) -> None:
    await fill_all(api)
    path = await backups.dump()
    target = api.store.client[backups.target]
    for name in ("restore_2026", "restored_by_operator", "restore.events"):
        await target[name].insert_one({"_id": 1})
    await backups.restore(path)
    found = await target.list_collection_names(filter={"name": {"$regex": "^restore"}})
    assert sorted(found) == ["restore_2026", "restored_by_operator"]


# Under running services


async def test_the_first_write_after_a_restore_succeeds(api: Api, backups: Backups) -> None:
    """Although it is the first to notice the restore."""
    event = await api.event("Concert")
    path = await backups.dump()
    for method, address, body, status in (
        ("PATCH", f"/events/{event['id']}", {"title": "Changed"}, 200),
        ("POST", "/events", MEANWHILE, 201),
        ("DELETE", f"/events/{event['id']}", None, 200),
    ):
        await backups.restore(path, into=backups.source, replace=True)
        api.store.feed.restores.read_at = 0.0
        assert (await api.send(method, address, body))[0] == status, method


@pytest.mark.parametrize("is_new", [True, False], ids=["create", "update"])
async def test_what_was_drafted_before_a_restore_is_not_stored_after_it(
    api: Api, backups: Backups, monkeypatch: pytest.MonkeyPatch, is_new: bool
) -> None:
    """The vocabulary of the dump does not have its words."""
    event = await api.event("Concert")
    path = await backups.dump()
    method, name = ("POST", "all_searchable") if is_new else ("PATCH", "searchable")
    address = "/events" if is_new else f"/events/{event['id']}"
    prepare = getattr(api.store.vocabulary, name)

    async def then_restored(*arguments: Any) -> Any:
        found = await prepare(*arguments)
        monkeypatch.undo()
        await backups.restore(path, into=backups.source, replace=True)
        api.store.feed.restores.read_at = 0.0  # more than a second ago
        return found

    monkeypatch.setattr(api.store.vocabulary, name, then_restored)
    body = MEANWHILE if is_new else {"title": "Meanwhile"}
    assert (await api.send(method, address, body))[0] == 503
    assert (await api.send(method, address, body))[0] in (200, 201)
    assert len(await api.ids("events", search="meanwhile")) == 1
    await agrees(api.store)


async def test_two_services_go_on_after_a_restore(pair: tuple[Api, Api], backups: Backups) -> None:
    """What they remember of the records, ids, words and slugs that were replaced does no harm."""
    for at, api in enumerate(pair):
        await api.event(f"Overture {at}", categories=["Music"], venue={"venue": "Hall"}, tags=[f"word{at}"])
    path = await backups.dump()
    later = []
    for api in pair:
        later.append(await api.event("Symphony allegro", categories=["Classical"], venue={"venue": "Opera"}))
        assert len(await api.ids("events", search="allegro")) > 0
        assert len(await api.ids("events", categories="classical")) > 0
    await backups.restore(path, into=backups.source, replace=True)
    for api in pair:
        assert await api.ids("events", search="allegro") == []
        assert (await api.get("/events", categories="classical"))[0] == 400
        assert (await api.get(f"/events/by-slug/{later[0]['slug']}"))[0] == 404
        assert {tag["name"] for tag in (await api.get("/tags"))[1]["tags"]} == {"word0", "word1"}
    ids = [event["id"] for event in later]
    for api in pair:
        again = await api.event("Symphony allegro", categories=["Classical"], venue={"venue": "Opera"})
        assert again["id"] > max(ids)
        ids.append(again["id"])
        assert again["id"] in await api.ids("events", search="allegro")
    assert len(set(ids)) == 4
    await agrees(pair[0].store)


class Crowd:
    """Clients that read and write all the time, and what they have seen."""

    def __init__(self, session: ClientSession, api: str, kept: list[dict[str, Any]]) -> None:
        self._session, self._events = session, f"{api}/events"
        self.seen: list[tuple[float, int, set[str]]] = []
        """When each request was sent, its status, and the titles in the response."""
        venue, self._is_over = kept[0]["venue"]["id"], asyncio.Event()
        queries = ("search=e&per_page=50", f"venue={venue}", "per_page=50&tags=kept")
        addresses = [f"?{query}" for query in queries] + [f"/{record['id']}" for record in kept[:3]]
        self._tasks = [asyncio.create_task(self._read(address)) for address in 2 * addresses]
        self._tasks.append(asyncio.create_task(self._write()))

    async def _read(self, address: str) -> None:
        while not self._is_over.is_set():
            started = time.monotonic()
            async with self._session.get(self._events + address) as answer:
                body = await answer.json()
                rows = body.get("events", [body] if "title" in body else [])
                self.seen.append((started, answer.status, {row["title"] for row in rows}))

    async def _write(self) -> None:
        while not self._is_over.is_set():
            async with self._session.post(self._events, json=MEANWHILE) as answer:
                assert answer.status in (201, 503), await answer.text()

    async def end(self) -> None:
        self._is_over.set()
        await asyncio.gather(*self._tasks)


async def test_nobody_sees_a_mixture_or_what_was_before(tmp_path: Path) -> None:
    """A response is of the records before the restore, of those after it, or 503; after the end of the
    command only the latter are shown, by both workers."""
    path, data_dir = tmp_path / "all.dump", tmp_path / "data"
    async with running(data_dir, WORKERS="2") as service, ClientSession() as session:
        events = f"{service.api}/events"

        async def sent(title: str) -> dict[str, Any]:
            body = MEANWHILE | {"title": title, "venue": {"venue": title}, "tags": ["kept"]}
            async with session.post(events, json=body) as answer:
                assert answer.status == 201
                return dict(await answer.json())

        kept = [await sent(f"Kept {number}") for number in range(10)]
        assert (await run(data_dir, "dump", str(path))).returncode == 0
        for record in kept:
            change = {"title": f"Later {record['id']}"}
            async with session.patch(f"{events}/{record['id']}", json=change) as answer:
                assert answer.status == 200
        crowd = Crowd(session, service.api, kept)
        await asyncio.sleep(0.5)
        ended = await run(data_dir, "restore", str(path), "--replace")
        end = time.monotonic()
        await asyncio.sleep(2)
        await crowd.end()
        assert ended.returncode == 0, ended.stderr
        assert {status for _, status, _ in crowd.seen} == {200, 503}
        for started, status, titles in crowd.seen:
            words = {title.split()[0] for title in titles} - {"Meanwhile"}
            if status == 200:
                assert words == {"Kept"} or (words == {"Later"} and started < end), titles
            assert status == 200 or started < end
        assert "Traceback" not in service.errors.read_text()
        async with open_store(running_uri(data_dir) or "", "kalends", Site()) as store:
            await agrees(store)


async def run(data_dir: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "service", *words]
    process = await asyncio.create_subprocess_exec(
        *command, cwd=REPOSITORY, env=environment(data_dir), stdout=-1, stderr=-1
    )
    output, errors = await process.communicate()
    return subprocess.CompletedProcess(command, process.returncode or 0, output.decode(), errors.decode())


@pytest.mark.slow
async def test_a_fan_out_that_is_slow_does_not_change_what_was_restored(
    api: Api, backups: Backups, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has read the venue before."""
    monkeypatch.setattr(fanout, "INLINE_FANOUT_SECONDS", 0.1)
    event = await api.event("Concert", venue={"venue": "Old name"})
    path, update, is_restored = await backups.dump(), api.store.fanout._update, asyncio.Event()

    async def update_later(*arguments: Any) -> Any:
        await is_restored.wait()
        return await update(*arguments)

    monkeypatch.setattr(api.store.fanout, "_update", update_later)
    assert (await api.patch(f"/venues/{event['venue']['id']}", {"venue": "New name"}))[0] == 200
    await backups.restore(path, into=backups.source, replace=True)
    is_restored.set()
    await asyncio.sleep(0.5)
    monkeypatch.undo()
    assert (await api.get(f"/events/{event['id']}"))[1]["venue"]["venue"] == "Old name"
    await agrees(api.store)
