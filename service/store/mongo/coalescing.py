"""Coalescing: concurrent look-ups become one (Batcher), the same work runs once (SingleFlight)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Batcher(Generic[Key, Value]):
    """Requests that arrive while a look-up is in flight wait for the next one, so that nobody gets data read
    before they asked. At most `in_flight` look-ups are in flight, each for at most `max_batch` keys."""

    def __init__(
        self,
        look: Callable[[Sequence[Key]], Awaitable[Mapping[Key, Value]]],
        in_flight: int = 1,
        max_batch: int | None = None,
    ) -> None:
        self._look, self._max_in_flight, self._max_batch = look, in_flight, max_batch
        self._waiting: dict[Key, list[asyncio.Future[Value | None]]] = {}
        self._looking: set[asyncio.Task[None] | None] = set()

    def load(self, key: Key) -> asyncio.Future[Value | None]:
        # One future per caller: a cancelled caller does not affect the others.
        answer: asyncio.Future[Value | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, []).append(answer)
        if len(self._looking) < self._max_in_flight:
            self._looking.add(asyncio.create_task(self._look_while_asked()))
        return answer

    async def _look_while_asked(self) -> None:
        while self._waiting:
            asked = {key: self._waiting.pop(key) for key in list(islice(self._waiting, self._max_batch))}
            try:
                found = await self._look(list(asked))
            except asyncio.CancelledError:
                for answer in still_wanted(asked.values()):
                    answer.cancel()
                raise
            except Exception as error:  # all callers in the batch get the error
                for answer in still_wanted(asked.values()):
                    answer.set_exception(error)
            else:
                for key, answers in asked.items():
                    for answer in still_wanted([answers]):
                        answer.set_result(found.get(key))
        self._looking.discard(asyncio.current_task())


def still_wanted(
    many: Iterable[list[asyncio.Future[Value | None]]],
) -> Iterable[asyncio.Future[Value | None]]:
    return (answer for answers in many for answer in answers if not answer.done())


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
