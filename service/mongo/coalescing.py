"""Coalescing of concurrent calls: into one batch of different keys, or into one run for the same key."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable, Mapping, Sequence
from contextvars import Context, copy_context
from functools import partial
from itertools import islice
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
MAX_RESUMED = 8
"""Callers of a batch that continue in the same pass of the event loop."""


class Batcher(Generic[Key, Value]):
    """Callers that arrive while a batch is in flight wait for the next one, so that nobody gets data read
    before they asked. At most `in_flight` batches are in flight, each of at most `max_batch` keys. One that
    takes longer than `slow_seconds` does not count: callers do not wait for it to end."""

    def __init__(
        self,
        load_batch: Callable[[Sequence[Key]], Awaitable[Mapping[Key, Value]]],
        in_flight: int = 1,
        max_batch: int | None = None,
        slow_seconds: float | None = None,
    ) -> None:
        self._load_batch, self._max_in_flight, self._max_batch = load_batch, in_flight, max_batch
        self._slow_seconds = slow_seconds
        self._waiting: dict[Key, tuple[Context, list[asyncio.Future[Value | None]]]] = {}
        self.calls = self.batches = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._slow: set[asyncio.Task[None]] = set()

    @property
    def waiting(self) -> int:
        """The number of callers that wait for the next batch."""
        return sum(len(results) for _, results in self._waiting.values())

    def load(self, key: Key) -> asyncio.Future[Value | None]:
        # One future per caller: a cancelled caller does not affect the others.
        result: asyncio.Future[Value | None] = asyncio.get_running_loop().create_future()
        if key not in self._waiting:
            self._waiting[key] = (copy_context(), [])
        self._waiting[key][1].append(result)
        self.calls += 1
        self._start()
        return result

    def _start(self) -> None:
        if not self._waiting or len(self._tasks) - len(self._slow) >= self._max_in_flight:
            return
        # In the context of the first caller: log lines about the batch have the id of that request.
        context, _ = next(iter(self._waiting.values()))
        task = asyncio.create_task(self._load_waiting(), context=context)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        if self._slow_seconds is not None:
            asyncio.get_running_loop().call_later(self._slow_seconds, self._mark_slow, task)

    def _mark_slow(self, task: asyncio.Task[None]) -> None:
        if task in self._tasks:
            self._slow.add(task)
            self._start()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._slow.discard(task)
        self._start()  # even after a cancelled batch: it must not leave later callers waiting

    async def _load_waiting(self) -> None:
        batch = {key: self._waiting.pop(key)[1] for key in list(islice(self._waiting, self._max_batch))}
        self.batches += bool(batch)  # another one may have taken all
        try:
            found = await self._load_batch(list(batch)) if batch else {}
        except asyncio.CancelledError:
            for result in pending(batch.values()):
                result.cancel()
            raise
        except Exception as error:  # every caller of the batch gets an exception object of its own
            for result in pending(batch.values()):
                result.set_exception(copy_of(error))
        else:
            resume([(result, found.get(key)) for key, results in batch.items() for result in results])


def resume(callers: Sequence[tuple[asyncio.Future[Value | None], Value | None]]) -> None:
    """Give the callers of a batch their values, a few in each pass of the event loop: all of them have work
    to do then, and others, such as health checks, must not wait until hundreds have done it."""
    for result, value in callers[:MAX_RESUMED]:
        if not result.done():
            result.set_result(value)
    if rest := callers[MAX_RESUMED:]:
        asyncio.get_running_loop().call_soon(resume, rest)


def copy_of(error: Exception) -> Exception:
    """A copy of an exception, with its traceback. `copy.copy` would call the constructor with the message."""
    copied = error.__class__.__new__(error.__class__)
    copied.args, copied.__dict__ = error.args, dict(error.__dict__)
    return copied.with_traceback(error.__traceback__)


def pending(
    batch: Iterable[list[asyncio.Future[Value | None]]],
) -> Iterable[asyncio.Future[Value | None]]:
    return (result for results in batch for result in results if not result.done())


class SingleFlight(Generic[Key, Value]):
    """Callers with the same key await the same task; it continues even if all of them are cancelled."""

    def __init__(self) -> None:
        self._running: dict[Key, asyncio.Task[Value]] = {}

    async def run(self, key: Key, work: Callable[[], Coroutine[Any, Any, Value]]) -> Value:
        if (task := self._running.get(key)) is None:
            task = self._running[key] = asyncio.create_task(work())
            task.add_done_callback(partial(self._end, key))
        return await asyncio.shield(task)

    def _end(self, key: Key, task: asyncio.Task[Value]) -> None:
        del self._running[key]
        if not task.cancelled():
            task.exception()  # mark it as retrieved: asyncio need not report it if no caller is left
