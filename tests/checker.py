"""Looks at a whole database and tells what in it does not agree with the rest."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import pytest
from pymongo.errors import OperationFailure

from service.doctor.checks import STAGES
from service.doctor.runner import Examination
from service.doctor.scope import Scope
from service.mongo.client import HISTORY_LOST
from service.store import Store

DEADLINE = 60.0
LONG_AGO = datetime(2001, 1, 1)


async def differences(store: Store) -> list[str]:
    """Fan-out jobs that are left, be they young, or else what `kalends doctor` finds."""
    if jobs := [f"left: {job}" async for job in store.database["fanout_jobs"].find()]:
        return jobs
    found: list[str] = []
    run = Examination(Scope(store), repairs=False, report=found.append, show=lambda done: None)
    await run.run(STAGES)
    return found


async def agrees(store: Store, seconds: float = 10.0) -> None:
    """Waits until there is no difference. Fan-out jobs that are left are run as if they were old."""
    found: list[str] = []

    async def clean() -> bool:
        await store.database["fanout_jobs"].update_many({}, {"$set": {"at": LONG_AGO}})
        await store.maintain()
        found[:] = await differences(store)
        return not found

    try:
        await until(clean, seconds)
    except TimeoutError:
        raise AssertionError("\n".join(found)) from None


async def maintain_later(store: Store) -> None:
    """A maintenance run long after all jobs that are stored now; nothing else may run."""
    await store.database["fanout_jobs"].update_many({}, {"$set": {"at": LONG_AGO}})
    await store.maintain()


async def until(
    condition: Callable[[], Awaitable[bool]], seconds: float = DEADLINE, pause: float = 0.1
) -> None:
    give_up = time.monotonic() + seconds
    while not await condition():
        if time.monotonic() > give_up:
            raise TimeoutError("it did not come true in time")
        await asyncio.sleep(pause)


async def lose_changes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oplog does not reach back to the checkpoint: MongoDB refuses to open the change stream there.
    Nothing is lost if the checkpoint moves before the stream is opened again: then once more."""

    def refuses(*arguments: Any, **options: Any) -> Any:
        monkeypatch.undo()
        raise OperationFailure("too old", HISTORY_LOST)

    async def is_lost() -> bool:
        await store.feed.close()
        monkeypatch.setattr(store.feed._database, "aggregate", refuses)
        await store.feed.catch_up()
        return store.feed.has_lost_changes

    await until(is_lost)
