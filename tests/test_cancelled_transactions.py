"""Requests and background tasks that are cancelled within a transaction: all of it is stored, or nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pymongo.synchronous.client_session import ClientSession

from schemas import CATEGORY, EVENT
from schemas.caller import EVERYBODY
from tests.checker import differences, maintain_later
from tests.conftest import Api

Pair = tuple[Api, Api]
SECONDS = 10


class Waiting:
    """Lets the first command of a transaction that has this name, on this collection, wait in the driver's
    thread, as for a connection. If its transaction is aborted, it goes on before the session ends."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, collection: str) -> None:
        self.reached, self._released, self._sent = (threading.Event() for _ in range(3))
        self._session: Any = None
        apply_to, end = ClientSession._apply_to, ClientSession._end_session

        def wait(session: Any, command: Any, *others: Any) -> Any:
            if self._session is not None or command.get(name) != collection or not session.in_transaction:
                return apply_to(session, command, *others)
            self._session = session
            self.reached.set()
            self._released.wait(SECONDS)
            applied = apply_to(session, command, *others)
            threading.Timer(0.3, self._sent.set).start()
            return applied

        def end_later(session: Any, lock: bool) -> None:
            if session is self._session:
                self._released.set()
                self._sent.wait(2)
            end(session, lock)

        monkeypatch.setattr(ClientSession, "_apply_to", wait)
        monkeypatch.setattr(ClientSession, "_end_session", end_later)

    async def cancel(self, task: asyncio.Task[Any]) -> None:
        assert await asyncio.to_thread(self.reached.wait, SECONDS)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await self.release()

    async def release(self) -> None:
        self._released.set()
        await asyncio.sleep(0.5)


@pytest.fixture
async def consistent(pair: Pair) -> AsyncIterator[Pair]:
    """Two processes whose records agree in the end."""
    yield pair
    await maintain_later(pair[1].store)
    assert await differences(pair[1].store) == []


async def test_event_and_venue(consistent: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = consistent
    event = await one.event("Old")
    waiting = Waiting(monkeypatch, "update", "events")
    data = {"title": "New", "venue": [{"venue": "Hall"}]}
    await waiting.cancel(asyncio.create_task(one.store.update(EVENT, event["id"], data, EVERYBODY)))
    _, shown = await other.get(f"/events/{event['id']}")
    assert (shown["title"] == "New") is bool((await other.get("/venues"))[1]["venues"])


async def test_move_of_a_category(consistent: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = consistent
    top, moved = [(await one.made("categories", name=name))["id"] for name in ("Top", "Moved")]
    await one.made("categories", name="Below", parent=moved)
    waiting = Waiting(monkeypatch, "update", "categories")
    await waiting.cancel(asyncio.create_task(one.store.update(CATEGORY, moved, {"parent": top}, EVERYBODY)))


async def test_deletion_of_a_category(consistent: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = consistent
    gone = (await one.made("categories", name="Gone"))["id"]
    await one.made("categories", name="Below", parent=gone)
    waiting = Waiting(monkeypatch, "findAndModify", "categories")
    await waiting.cancel(asyncio.create_task(one.store.delete(CATEGORY, gone, EVERYBODY)))


async def test_change_log_of_a_service_that_stops(consistent: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = consistent
    await one.made("tags", name="Rock")
    await one.store.log.update()
    waiting = Waiting(monkeypatch, "insert", "changes")
    one.store.log.end_pause()
    await one.event("Concert", tags=["Rock"])
    assert await asyncio.to_thread(waiting.reached.wait, SECONDS)
    await one.store._tasks.finish(0.1)
    await waiting.release()
    monkeypatch.undo()
    await other.store.log.update()
    assert (await other.get("/tags"))[1]["tags"][0]["count"] == 1
