"""Work that gives way: what arrives later does not wait until all of it is done."""

from __future__ import annotations

import asyncio
from time import monotonic

from handlers.time_slices import SLICE_SECONDS, TimeSlices

TASKS = 100


def occupy(seconds: float) -> None:
    end = monotonic() + seconds
    while monotonic() < end:
        pass


async def work(slices: TimeSlices, order: list[str]) -> None:
    await slices.let_others_run()
    occupy(SLICE_SECONDS / 4)
    order.append("work")


async def test_a_later_task_runs_before_the_work_that_is_ready_is_done() -> None:
    slices, order = TimeSlices(), list[str]()

    async def quick() -> None:
        order.append("quick")

    await asyncio.gather(*(work(slices, order) for _ in range(TASKS)), quick())
    assert order.count("work") == TASKS
    assert order.index("quick") < TASKS / 2


async def test_work_that_has_given_way_does_not_fill_the_next_pass() -> None:
    slices, order = TimeSlices(), list[str]()

    async def watch() -> None:
        while order.count("work") < TASKS:
            order.append("pass")
            await asyncio.sleep(0)

    await asyncio.gather(*(work(slices, order) for _ in range(TASKS)), watch())
    assert order.count("pass") >= TASKS / 10


async def test_work_that_fits_into_a_slice_is_not_interrupted() -> None:
    slices, order = TimeSlices(), list[int]()

    async def work(number: int) -> None:
        for _ in range(3):
            await slices.let_others_run()
            order.append(number)

    await asyncio.gather(work(1), work(2))
    assert order == [1, 1, 1, 2, 2, 2]


async def test_those_who_wait_go_on_before_those_who_come_later() -> None:
    slices, order = TimeSlices(), list[int]()

    async def work(number: int) -> None:
        await asyncio.sleep(0.001 * (number > TASKS))
        await slices.let_others_run()
        occupy(SLICE_SECONDS / 4)
        order.append(number)

    await asyncio.gather(*(work(number) for number in range(TASKS)), work(TASKS + 1))
    assert order[-1] == TASKS + 1


async def test_a_cancelled_task_does_not_hold_up_the_others() -> None:
    slices, done = TimeSlices(), list[int]()

    async def work(number: int) -> None:
        await slices.let_others_run()
        occupy(SLICE_SECONDS * 2)
        done.append(number)

    tasks = [asyncio.create_task(work(number)) for number in range(6)]
    await asyncio.sleep(0)
    for task in tasks[1:4]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert done == [0, 4, 5]


def test_turns_of_a_closed_event_loop_are_forgotten() -> None:
    slices = TimeSlices()

    async def work() -> None:
        await slices.let_others_run()
        occupy(SLICE_SECONDS * 2)

    async def leave_unfinished() -> None:
        for _ in range(3):
            asyncio.create_task(work())  # noqa: RUF006 - they are to be left
        await asyncio.sleep(0)

    asyncio.run(leave_unfinished())
    asyncio.run(asyncio.wait_for(work(), 5))
