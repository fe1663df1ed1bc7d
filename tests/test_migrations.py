"""A database of version 0.1.0 is upgraded, whoever starts and dies meanwhile; a newer one is refused."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from bson import json_util
from pymongo.errors import AutoReconnect

from schemas import EVENT
from schemas.site import Site
from service import migrations
from service.imports.imported import ImportedRecords
from service.migrations import FORM, DatabaseTooNew, form_2, lease, migrate, stored_form
from service.mongo.client import Database
from service.store import Store, open_store
from tests.checker import agrees
from tests.conftest import MakeApi

OLD = Path(__file__).parent / "data" / "kalends-0.1.0.ndjson"
"""What version 0.1.0 stored, with traces of killed processes: an event that is not counted, a venue whose
copies are out of date, and a line of an import that was claimed but not stored."""


@pytest.fixture
async def old(store: Store) -> Database:
    database = store.database
    for line in OLD.read_text().splitlines():
        row = json_util.loads(line)
        await database[row["collection"]].replace_one(
            {"_id": row["document"]["_id"]}, row["document"], upsert=True
        )
    await database["meta"].delete_many({})
    return database


async def test_a_database_of_the_first_version_is_upgraded(
    old: Database, store: Store, make_api: MakeApi
) -> None:
    before = {row["_id"]: row async for row in old["events"].find()}
    assert await stored_form(old) == 1
    await store.start()
    assert await stored_form(old) == FORM
    await agrees(store)
    after = {row["_id"]: row async for row in old["events"].find()}
    assert after.keys() == before.keys()
    derived = {"debt", "told", "venue", "version", "modified_utc", "has_own_time", "import_key"}
    for id, event in before.items():
        kept = {name: value for name, value in event.items() if name not in derived}
        assert {name: value for name, value in after[id].items() if name not in derived} == kept
    names = set(await old.list_collection_names())
    assert names.isdisjoint({"debts", "importers", "imports", "chores"})
    api = await make_api()
    status, page = await api.get("/events?start_date=2026-01-01&per_page=50")
    assert (status, page["total"]) == (200, 26)
    assert {venue["venue"] for venue in (await api.get("/venues"))[1]["venues"]} == {"Grand Hall", "Big Barn"}


async def test_lines_that_a_killed_import_has_claimed_can_be_imported(old: Database, store: Store) -> None:
    claimed, imported = bytes([9]) * 20, bytes([1]) * 20
    await store.start()
    assert set(await ImportedRecords(store.database).find(EVENT, [claimed, imported])) == {imported}


async def test_processes_that_start_together_upgrade_once(
    old: Database, mongodb_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "WAIT_SECONDS", 0.05)
    steps, step = [], migrations.STEPS[2]

    async def counted(database: Database, report: Any) -> None:
        steps.append(1)
        await asyncio.sleep(0.3)
        await step(database, report)

    monkeypatch.setitem(migrations.STEPS, 2, counted)

    async def start() -> None:
        async with open_store(mongodb_uri, old.name, Site()) as store:
            await agrees(store)

    await asyncio.gather(*(start() for _ in range(3)))
    assert steps == [1]


async def test_an_upgrade_that_was_killed_is_done_again(
    old: Database, store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The process dies in the middle; its lease expires, and the next process, which says that it waits for
    it, repeats the step."""
    caplog.set_level("INFO", "kalends.migrations")
    monkeypatch.setattr(lease, "LEASE_SECONDS", 1)
    monkeypatch.setattr(lease, "WAIT_SECONDS", 0.05)
    in_slices, calls = form_2._in_slices, []

    async def dies(database: Database, name: str, *others: Any) -> None:
        calls.append(name)
        if len(calls) == 2:
            await asyncio.sleep(3600)
        await in_slices(database, name, *others)

    monkeypatch.setattr(form_2, "_in_slices", dies)
    killed = asyncio.create_task(migrate(old, lambda *_: None))
    while len(calls) < 2:
        await asyncio.sleep(0.01)
    assert await old["meta"].find_one({"_id": "migration"}) is not None
    await store.start()
    assert len(calls) == 4
    killed.cancel()  # only now: until then it does nothing, as if it was dead
    await asyncio.gather(killed, return_exceptions=True)
    waits = "another process is busy with the migration; waiting until it is done"
    assert [record.getMessage() for record in caplog.records].count(waits) == 1
    await agrees(store)


async def test_a_newer_database_is_refused(store: Store) -> None:
    await store.database["meta"].update_one({"_id": "form"}, {"$set": {"number": FORM + 1}}, upsert=True)
    with pytest.raises(DatabaseTooNew, match=f"stored form {FORM + 1}, made by a newer version of Kalends"):
        await store.start()
    await store.database["meta"].delete_many({})


async def test_an_empty_database_has_the_current_form(store: Store) -> None:
    await store.database["meta"].delete_many({})
    await store.start()
    assert await store.database["meta"].find_one({"_id": "form"}) == {"_id": "form", "number": FORM}


async def test_a_lease_that_could_not_be_renewed_once_is_renewed_later(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.01)
    renew, calls = lease._renew, list[str]()

    async def unreliable(database: Database, job: str, holder: str) -> bool:
        calls.append(job)
        if len(calls) == 2:
            raise AutoReconnect("gone")
        return await renew(database, job, holder)

    monkeypatch.setattr(lease, "_renew", unreliable)
    async with lease.hold_lease(store.database, "test"), asyncio.timeout(10):
        while len(calls) < 4:
            await asyncio.sleep(0.01)
    assert not await store.database["meta"].find_one({"_id": "test"})


async def test_who_is_stopped_gives_the_lease_back(store: Store) -> None:
    holds = asyncio.Event()

    async def work() -> None:
        async with lease.hold_lease(store.database, "test"):
            holds.set()
            await asyncio.sleep(3600)

    stopped = asyncio.create_task(work())
    await holds.wait()
    assert await store.database["meta"].find_one({"_id": "test"})
    stopped.cancel()
    await asyncio.gather(stopped, return_exceptions=True)
    assert stopped.cancelled()
    assert not await store.database["meta"].find_one({"_id": "test"})
