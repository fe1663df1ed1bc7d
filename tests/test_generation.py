"""The clock of the database: it changes with every write, and is told whichever way it is asked for."""

from __future__ import annotations

import asyncio
import socket

import pytest

from service.store import Store, freshness
from service.store.freshness import WriteClock
from service.store.mongo.coalescing import Batcher
from service.store.pulse import Pulse


async def write(store: Store) -> None:
    await store.database["counters"].update_one({"_id": "test"}, {"$inc": {"n": 1}}, upsert=True)


async def test_every_write_makes_a_new_one(store: Store) -> None:
    seen = {await store.clock.read()}
    for number in range(2, 20):
        await write(store)
        seen.add(await store.clock.read())
        assert len(seen) == number
        assert await store.clock.read() in seen
    assert None not in seen


async def test_a_write_of_another_client_is_seen_as_soon_as_it_is_acknowledged(
    store: Store, mongodb_uri: str
) -> None:
    other = WriteClock(store.client[store.database.name])
    before = await other.read()
    for _ in range(50):
        await write(store)
        assert before != (before := await other.read())
    await other.close()


async def test_the_driver_is_asked_where_the_short_way_fails(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freshness, "REST", 3)
    right = await store.clock.read()
    with socket.create_server(("127.0.0.1", 0)) as deaf, monkeypatch.context() as patch:
        patch.setattr("service.store.pulse.LONGEST", 0.1)
        patch.setattr(Pulse, "_primary", lambda _: deaf.getsockname()[:2])
        assert await store.clock.read() == right
    with monkeypatch.context() as patch:
        patch.setattr(Pulse, "_primary", lambda _: None)
        for _ in range(5):
            assert await store.clock.read() == right
    for _ in range(5):
        assert await store.clock.read() == right
    assert store.clock._pulse._line is not None


async def test_a_connection_that_was_lost_is_made_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freshness, "REST", 1)
    right = await store.clock.read()
    line = store.clock._pulse._line
    assert line
    line.close()
    await asyncio.sleep(0)
    for _ in range(3):
        assert await store.clock.read() == right
    assert store.clock._pulse._line not in (None, line)


async def test_who_is_no_primary_is_not_believed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    feel = Pulse.feel
    said = await store.clock._pulse.feel()
    monkeypatch.setattr(
        "service.store.pulse.Line.ask", lambda _: asyncio.sleep(0, said | {"isWritablePrimary": False})
    )
    with pytest.raises(ConnectionError):
        await feel(store.clock._pulse)
    assert await store.clock.read() is not None


async def test_those_who_ask_together_are_told_together_and_nothing_from_before() -> None:
    looks: list[list[int]] = []
    goes_on = asyncio.Event()

    async def look(keys: list[int]) -> dict[int, int]:
        looks.append(sorted(keys))
        await goes_on.wait()
        return {key: len(looks) for key in keys}

    batch = Batcher[int, int](look)  # type: ignore[arg-type]
    first = batch.load(1)
    await asyncio.sleep(0.01)
    others = [batch.load(key) for key in (1, 2, 2, 3)]
    await asyncio.sleep(0.01)
    others.pop().cancel()  # who gives up takes nothing from the others
    goes_on.set()
    assert await first == 1
    assert await asyncio.gather(*others) == [2, 2, 2]
    assert looks == [[1], [1, 2, 3]]


async def test_a_look_that_fails_fails_for_all_who_wait_and_nobody_else() -> None:
    fails = True

    async def look(keys: list[int]) -> dict[int, int]:
        if fails:
            raise ValueError
        return dict.fromkeys(keys, 7)

    batch = Batcher[int, int](look)  # type: ignore[arg-type]
    found = await asyncio.gather(batch.load(1), batch.load(2), return_exceptions=True)
    assert [type(one) for one in found] == [ValueError, ValueError]
    fails = False
    assert await batch.load(1) == 7
