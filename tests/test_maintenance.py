"""Starting the store: quickly, or in the background of a service that is already asked for its health."""

from __future__ import annotations

import asyncio

import pytest
from pymongo.errors import AutoReconnect

from schemas.caller import PUBLIC
from service.migrations import FormUnknown
from service.process import maintenance
from service.process.maintenance import maintained
from service.store import Store
from tests.checker import until


@pytest.fixture
def unstarted(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(maintenance, "RETRY_SECONDS", 0.01)
    store.started = False
    return store


async def test_a_store_that_starts_quickly_is_usable_at_once(unstarted: Store) -> None:
    async with maintained(unstarted, PUBLIC):
        assert unstarted.started


async def test_what_fails_quickly_is_raised(
    unstarted: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def start() -> None:
        raise FormUnknown

    monkeypatch.setattr(unstarted, "start", start)
    with pytest.raises(FormUnknown):
        async with maintained(unstarted, PUBLIC):
            pass
    assert caplog.records == []


@pytest.mark.parametrize(
    ("error", "logged"),
    [
        (None, []),
        (FormUnknown(), ["background maintenance failed; retrying"]),
        (AutoReconnect("gone"), []),
    ],
)
async def test_what_takes_long_goes_on_in_the_background(
    unstarted: Store,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception | None,
    logged: list[str],
) -> None:
    monkeypatch.setattr(maintenance, "QUICK_START_SECONDS", 0.01)
    start, may_end, calls = unstarted.start, asyncio.Event(), list[int]()

    async def start_slowly() -> None:
        calls.append(1)
        if len(calls) == 1:
            await may_end.wait()
            if error:
                raise error
        await start()

    async def has_started() -> bool:
        return unstarted.started

    monkeypatch.setattr(unstarted, "start", start_slowly)
    async with maintained(unstarted, PUBLIC):
        await asyncio.sleep(0.1)
        assert (unstarted.started, len(calls)) == (False, 1)
        may_end.set()
        await until(has_started)
    assert len(calls) == (2 if error else 1)
    assert [record.getMessage() for record in caplog.records] == logged


async def test_a_start_in_the_background_ends_with_the_service(
    unstarted: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "QUICK_START_SECONDS", 0.01)
    ended: list[type[BaseException]] = []

    async def start() -> None:
        try:
            await asyncio.sleep(3600)
        except BaseException as error:
            ended.append(type(error))
            raise

    monkeypatch.setattr(unstarted, "start", start)
    async with asyncio.timeout(20), maintained(unstarted, PUBLIC):
        pass
    assert ended == [asyncio.CancelledError]
