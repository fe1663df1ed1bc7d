"""Single flight: concurrent callers share one execution of the same work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class Joint(Generic[Result]):
    """Callers with the same key await the same task; it continues even if all of them are cancelled."""

    def __init__(self) -> None:
        self._under_way: dict[bytes, asyncio.Task[Result]] = {}

    async def do(self, key: bytes, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        if (task := self._under_way.get(key)) is None:
            task = self._under_way[key] = asyncio.create_task(work())
            task.add_done_callback(partial(self._end, key))
        return await asyncio.shield(task)

    def _end(self, key: bytes, task: asyncio.Task[Result]) -> None:
        del self._under_way[key]
        if not task.cancelled():
            task.exception()  # mark it as retrieved: asyncio need not report it if no caller is left
