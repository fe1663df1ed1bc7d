"""Transactions of crashed processes are aborted, so that they do not keep others from writing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pymongo
import pytest
from pymongo.errors import PyMongoError

from schemas.errors import UnderRestore
from service.changes.feed import CHECKPOINT
from service.changes.restores import MARKER
from service.mongo import abandoned_transactions
from service.mongo.abandoned_transactions import abort_abandoned_transactions
from service.mongo.client import Session, in_transaction
from service.store import Store
from tests.conftest import Api

LOCKED = {"_id": "locked"}
MORE = {"$inc": {"n": 1}}


@pytest.fixture
async def left(store: Store) -> AsyncIterator[Session]:
    """The session of a transaction that nobody goes on with; it has written to a document."""
    await store.database["counters"].insert_one(LOCKED | {"n": 0})
    async with await store.client.start_session() as session, session.start_transaction():
        await store.database["counters"].update_one(LOCKED, MORE, session=session)
        yield session
        await session.abort_transaction()


async def written(store: Store) -> int:
    """Write to the document, and return its number."""
    with pymongo.timeout(2):
        await store.database["counters"].update_one(LOCKED, MORE)
    found = await store.database["counters"].find_one(LOCKED)
    assert found
    return int(found["n"])


async def test_maintenance_aborts_what_was_left(
    store: Store, left: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(abandoned_transactions, "ABANDONED_AFTER_SECONDS", 0.0)
    await store.maintain()
    assert await written(store) == 1


async def test_maintenance_aborts_it_during_a_restore_too(
    store: Store, left: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The restore waits for what it has locked."""
    monkeypatch.setattr(abandoned_transactions, "ABANDONED_AFTER_SECONDS", 0.0)
    await store.database["meta"].insert_one({"_id": MARKER})
    try:
        with pytest.raises(UnderRestore):
            await store.maintain()
    finally:
        await store.database["meta"].delete_one({"_id": MARKER})
    assert await written(store) == 1


async def test_a_transaction_that_goes_on_is_not_aborted(
    store: Store, left: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(abandoned_transactions, "ABANDONED_AFTER_SECONDS", 3600.0)
    await store.maintain()
    with pytest.raises(PyMongoError):
        await written(store)
    await store.database["counters"].update_one(LOCKED, MORE, session=left)


async def test_an_aborted_transaction_is_repeated(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process was only slow: it is aborted before it is committed."""
    monkeypatch.setattr(abandoned_transactions, "ABANDONED_AFTER_SECONDS", 0.0)
    await store.database["counters"].insert_one(LOCKED | {"n": 0})
    attempts = []

    async def work(session: Session) -> None:
        attempts.append(1)
        await store.database["counters"].update_one(LOCKED, MORE, session=session)
        if len(attempts) == 1:
            await abort_abandoned_transactions(store.client)

    await in_transaction(store.database, work)
    assert len(attempts) == 2
    assert await written(store) == 2


async def test_maintenance_goes_on_while_the_change_log_waits_for_what_was_left(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process was killed while it was appending to the log: maintenance must come to abort that."""
    monkeypatch.setattr("service.store.MAX_UPDATE_SECONDS", 0.2)
    checkpoint = {"_id": CHECKPOINT}
    async with await store.client.start_session() as session, session.start_transaction():
        await store.database["meta"].update_one(checkpoint, {"$inc": {"number": 1}}, session=session)
        await store.database["tags"].insert_one({"_id": 1, "slug": "a", "version": 1})
        await store.maintain()
        assert store.feed.unlogged
        monkeypatch.setattr(abandoned_transactions, "ABANDONED_AFTER_SECONDS", 0.0)
        monkeypatch.setattr("service.store.MAX_UPDATE_SECONDS", 5.0)
        await store.maintain()
        assert not store.feed.unlogged
        with suppress(PyMongoError):
            await session.abort_transaction()


async def test_creations_do_not_wait_for_one_that_is_locked(api: Api) -> None:
    """Two slugs are locked: two batches wait for them until the transaction is aborted."""
    await api.event("Seed")
    events = api.store.database["events"]
    seed = await events.find_one() or {}
    times = {"start_date": "2027-06-01", "end_date": "2027-06-01"}
    async with await api.store.client.start_session() as session:
        session.start_transaction()
        for number, slug in enumerate(("jazz", "rock"), 5000):
            await events.insert_one({**seed, "_id": number, "slug": slug}, session=session)
        locked = []
        for title in ("Jazz", "Rock"):
            locked.append(asyncio.create_task(api.post("/events", {"title": title, **times})))
            await asyncio.sleep(0.1)
        async with asyncio.timeout(30):
            assert (await api.post("/events", {"title": "Blues", **times}))[0] == 201
        assert not any(task.done() for task in locked)
        await session.abort_transaction()
    assert [(await task)[0] for task in locked] == [201, 201]
