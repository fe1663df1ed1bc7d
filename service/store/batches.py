"""Questions asked at the same time are answered by one look at the database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Batch(Generic[Key, Value]):
    """While one look is under way, all who ask wait for the next one: nobody is told what was read before
    they asked."""

    def __init__(self, look: Callable[[Sequence[Key]], Awaitable[Mapping[Key, Value]]]) -> None:
        self._look = look
        self._waiting: dict[Key, asyncio.Future[Value | None]] = {}
        self._looking: asyncio.Task[None] | None = None

    async def ask(self, key: Key) -> Value | None:
        if (answer := self._waiting.get(key)) is None:
            answer = self._waiting[key] = asyncio.get_running_loop().create_future()
            # Whoever asked may have given up by then; that is no news to anybody.
            answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        if self._looking is None:
            self._looking = asyncio.create_task(self._look_while_asked())
        return await asyncio.shield(answer)

    async def _look_while_asked(self) -> None:
        while self._waiting:
            asked, self._waiting = self._waiting, {}
            try:
                found = await self._look(list(asked))
            except asyncio.CancelledError:
                for answer in asked.values():
                    answer.cancel()
                raise
            except Exception as error:  # whatever it is, it is the answer that all of them wait for
                for answer in asked.values():
                    answer.set_exception(error)
            else:
                for key, answer in asked.items():
                    answer.set_result(found.get(key))
        self._looking = None
