"""Background tasks: failures are logged, unless the task was cancelled anyway."""

from __future__ import annotations

import asyncio

import pytest

from service.background import BackgroundTasks, background_task


async def test_a_failure_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise ValueError("broken")

    tasks = BackgroundTasks()
    tasks.start(fail(), "counting")
    await tasks.finish(1.0)
    (record,) = caplog.records
    assert record.getMessage() == "counting failed"
    assert record.exc_info
    assert isinstance(record.exc_info[1], ValueError)


async def test_what_a_late_task_fails_with_when_it_is_cancelled_is_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As a driver that is interrupted while it aborts a transaction, and aborts it again."""

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            raise ValueError("interrupted")

    tasks = BackgroundTasks()
    task = tasks.start(work(), "counting")
    await asyncio.sleep(0)
    await tasks.finish(0.01)
    assert isinstance(task.exception(), ValueError)
    assert caplog.records == []


async def test_a_task_of_a_context_that_fails_is_logged_at_once_and_the_context_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail() -> None:
        raise ValueError("broken")

    async with background_task(fail()):
        await asyncio.sleep(0.01)
        (record,) = caplog.records
    assert record.getMessage() == "background task failed"
    assert record.exc_info
    assert isinstance(record.exc_info[1], ValueError)
    assert caplog.records == [record]
