"""Questions asked at the same time are answered by one look at the database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Batch(Generic[Key, Value]):
    """While a look is under way, all who ask wait for the next one: nobody is told what was read before
    they asked. There may be several looks at once, and a look may be for so many at most."""

    def __init__(
        self,
        look: Callable[[Sequence[Key]], Awaitable[Mapping[Key, Value]]],
        at_once: int = 1,
        most: int | None = None,
    ) -> None:
        self._look, self._at_once, self._most = look, at_once, most
        self._waiting: dict[Key, list[asyncio.Future[Value | None]]] = {}
        self._looking: set[asyncio.Task[None] | None] = set()

    def ask(self, key: Key) -> asyncio.Future[Value | None]:
        # One for each who asks: who gives up waiting takes nothing from the others.
        answer: asyncio.Future[Value | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, []).append(answer)
        if len(self._looking) < self._at_once:
            self._looking.add(asyncio.create_task(self._look_while_asked()))
        return answer

    async def _look_while_asked(self) -> None:
        while self._waiting:
            asked = {key: self._waiting.pop(key) for key in list(islice(self._waiting, self._most))}
            try:
                found = await self._look(list(asked))
            except asyncio.CancelledError:
                for answer in still_wanted(asked.values()):
                    answer.cancel()
                raise
            except Exception as error:  # whatever it is, it is the answer that all of them wait for
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
