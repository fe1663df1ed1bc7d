"""Background tasks: one that runs as long as a context is open, and short ones that nobody waits for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from schemas.errors import UnderRestore

log = logging.getLogger("kalends.background")


@asynccontextmanager
async def background_task(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run the work in a task, which is cancelled on exit. If it fails, that is logged when it happens, and
    not raised: what the context is open for goes on without it."""
    task = asyncio.create_task(work, name="background task")
    task.add_done_callback(log_failure)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def log_failure(task: asyncio.Task[None]) -> None:
    """Log what a task has failed with, with its traceback."""
    error = None if task.cancelled() else task.exception()
    # A restore replaces what the task was about; and the driver may fail because a task is cancelled.
    if error and not task.cancelling() and not isinstance(error, UnderRestore):
        log.error("%s failed", task.get_name(), exc_info=error)


class BackgroundTasks:
    """Tasks that outlive the request that started them; a failure is logged with its traceback."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        log_failure(task)

    async def finish(self, seconds: float) -> None:
        """Wait for the tasks; those that are not done in time are cancelled."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
