"""Who goes when: at once, together, or after a while."""

from __future__ import annotations

import asyncio

import pytest

from service.store import convoys
from service.store.convoys import Convoy


class Road:
    """Travellers by name, and the order in which they set out."""

    def __init__(self) -> None:
        self.convoy = Convoy()
        self.gone: list[str] = []
        self.arrives: dict[str, asyncio.Event] = {}

    async def _travel(self, name: str) -> None:
        async with self.convoy:
            self.gone.append(name)
            await self.arrives[name].wait()

    async def start(self, names: str) -> list[asyncio.Task[None]]:
        self.arrives |= {name: asyncio.Event() for name in names}
        tasks = [asyncio.create_task(self._travel(name)) for name in names]
        await asyncio.sleep(0.01)
        return tasks

    async def arrive(self, names: str) -> None:
        for name in names:
            self.arrives[name].set()
        await asyncio.sleep(0.01)


async def test_who_comes_on_a_free_road_goes_and_others_when_they_are_as_many_as_those_before() -> None:
    road = Road()
    await road.start("a")
    assert road.gone == ["a"]
    await road.start("b")
    assert road.gone == ["a", "b"]
    await road.start("c")
    assert road.gone == ["a", "b"]
    await road.start("d")
    assert sorted(road.gone) == ["a", "b", "c", "d"]


async def test_those_who_arrive_make_room() -> None:
    road = Road()
    await road.start("ab")
    await road.start("c")
    assert sorted(road.gone) == ["a", "b"]
    await road.arrive("b")
    assert sorted(road.gone) == ["a", "b", "c"]
    await road.start("d")
    assert sorted(road.gone) == ["a", "b", "c"]
    await road.arrive("ac")
    assert sorted(road.gone) == ["a", "b", "c", "d"]


async def test_many_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convoys, "FULL", 3)
    road = Road()
    for names in ("a", "b", "cd", "efg"):
        await road.start(names)
    assert len(road.gone) == 7
    await road.start("hi")
    assert len(road.gone) == 7
    await road.start("j")
    assert len(road.gone) == 10


async def test_nobody_waits_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convoys, "PATIENCE", 0.02)
    road = Road()
    await road.start("ab")
    await road.start("c")
    async with asyncio.timeout(10):
        while road.gone != ["a", "b", "c"]:
            await asyncio.sleep(0.01)


async def test_who_gives_up_or_fails_holds_nobody_up() -> None:
    road = Road()
    first, second = await road.start("ab")
    third, _ = await road.start("c") + await road.start("d")
    assert sorted(road.gone) == ["a", "b", "c", "d"]
    fifth, sixth = await road.start("ef")
    fifth.cancel()
    for one in (first, second, third):
        one.cancel()
    await asyncio.sleep(0.01)
    assert road.gone[4:] == ["f"]
    sixth.cancel()
    await road.arrive("d")
    await road.start("g")
    assert road.gone[4:] == ["f", "g"]
