"""Questions that are asked together: how many looks answer them, and which of them each one is for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextvars import ContextVar

import pytest
from pymongo.errors import AutoReconnect

from schemas.errors import InvalidFields
from service.mongo.coalescing import Batcher


class Looks:
    """Answers numbers with their squares, and remembers what each look was for."""

    def __init__(self) -> None:
        self.made: list[list[int]] = []
        self.together = 0
        self._now = 0

    async def __call__(self, asked: Sequence[int]) -> dict[int, int]:
        self.made.append(list(asked))
        self._now += 1
        self.together = max(self.together, self._now)
        await asyncio.sleep(0.01)
        self._now -= 1
        return {number: number**2 for number in asked}


@pytest.mark.parametrize("at_once", [1, 2])
@pytest.mark.parametrize(
    ("most", "made"),
    [(None, [[0, 1, 2, 3, 4, 5, 6]]), (3, [[0, 1, 2], [3, 4, 5], [6]]), (7, [[0, 1, 2, 3, 4, 5, 6]])],
)
async def test_no_look_is_for_more_than_the_most(
    at_once: int, most: int | None, made: list[list[int]]
) -> None:
    looks = Looks()
    batch = Batcher[int, int](looks, at_once, most)
    assert await asyncio.gather(*map(batch.load, range(7))) == [0, 1, 4, 9, 16, 25, 36]
    assert looks.made == made
    assert looks.together == min(at_once, len(made))


async def test_who_asks_while_a_look_is_under_way_waits_for_the_next() -> None:
    looks = Looks()
    batch = Batcher[int, int](looks)
    first = batch.load(1)
    await asyncio.sleep(0)
    assert await asyncio.gather(first, batch.load(1), batch.load(2)) == [1, 1, 4]
    assert looks.made == [[1], [1, 2]]


async def test_a_batch_has_the_context_of_its_own_first_caller() -> None:
    """Not of the one whose batch has just ended, nor of later ones."""
    caller: ContextVar[str] = ContextVar("caller", default="nobody")
    seen: list[tuple[list[int], str]] = []

    async def look(asked: Sequence[int]) -> dict[int, int]:
        seen.append((list(asked), caller.get()))
        await asyncio.sleep(0.01)
        return {}

    batch = Batcher[int, int](look, max_batch=2)

    async def ask(number: int) -> None:
        caller.set(f"caller {number}")
        await batch.load(number)

    await asyncio.gather(*map(ask, range(4)))
    assert seen == [([0, 1], "caller 0"), ([2, 3], "caller 2")]
    assert (batch.calls, batch.batches, batch.waiting) == (4, 2, 0)


async def test_nobody_waits_for_a_slow_batch() -> None:
    ended = asyncio.Event()

    async def looks(asked: Sequence[int]) -> dict[int, int]:
        if 1 in asked:
            await ended.wait()
        return {number: number**2 for number in asked}

    batch = Batcher[int, int](looks, slow_seconds=0.01)
    slow = batch.load(1)
    await asyncio.sleep(0)
    assert await batch.load(2) == 4
    assert await batch.load(3) == 9
    assert not slow.done()
    ended.set()
    assert await slow == 1


async def test_callers_after_a_cancelled_batch_are_answered() -> None:
    looks = Looks()
    batch = Batcher[int, int](looks)
    first = batch.load(1)
    await asyncio.sleep(0)
    (task,) = batch._tasks
    later = batch.load(2)
    task.cancel()
    assert await later == 4
    assert first.cancelled()
    assert await batch.load(3) == 9


async def test_callers_of_a_failed_batch_get_exceptions_of_their_own() -> None:
    async def fails(_: Sequence[int]) -> dict[int, int]:
        raise AutoReconnect("lost", errors=["why"])

    batch = Batcher[int, int](fails)
    found = await asyncio.gather(batch.load(1), batch.load(2), return_exceptions=True)
    assert [(type(error), str(error)) for error in found] == [(AutoReconnect, "lost")] * 2
    assert found[0] is not found[1]


async def test_errors_with_constructors_of_their_own_reach_every_caller() -> None:
    async def refuse(asked: Sequence[int]) -> dict[int, int]:
        raise InvalidFields({"title": "too long"})

    batcher = Batcher[int, int](refuse)
    errors = await asyncio.gather(batcher.load(1), batcher.load(2), return_exceptions=True)
    assert [error.params for error in errors if isinstance(error, InvalidFields)] == [
        {"title": "too long"}
    ] * 2
    assert errors[0] is not errors[1]
