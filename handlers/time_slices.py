"""Time slices: work on the event loop gives way to others, such as health checks, after a while."""

from __future__ import annotations

import asyncio
from collections import deque
from time import monotonic
from typing import Any, NamedTuple

SLICE_SECONDS = 0.004
"""How long a task may work before others get their turn. Under load hundreds can be ready at once."""
MAX_OWNERS = 4
"""Tasks that continue in one pass. With one, passes are so short that different lists are 25 % slower."""
Task = asyncio.Task[Any] | None


class Turn(NamedTuple):
    """A task that waits until it may continue."""

    task: Task
    comes: asyncio.Future[None]


class TimeSlices:
    """In each pass of the event loop the tasks that have waited longest get a slice each. While none waits,
    all that are ready share one."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: deque[Turn] = deque()
        self._owners: set[Task] = set()
        self._began_at: float | None = None

    async def let_others_run(self) -> None:
        """Continue in a later pass of the event loop if the slice of this one is used up."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if loop is not self._loop:
            self._loop, self._waiting, self._began_at = loop, deque(), None
        if self._began_at is None:
            self._begin(loop, {task})
        elif monotonic() - self._began_at > SLICE_SECONDS or (self._waiting and task not in self._owners):
            turn = Turn(task, loop.create_future())
            self._waiting.append(turn)
            await turn.comes
            self._began_at = monotonic()  # before `_end`: callbacks run in the order of their scheduling

    def _begin(self, loop: asyncio.AbstractEventLoop, owners: set[Task]) -> None:
        self._began_at, self._owners = monotonic(), owners
        loop.call_soon(self._end, loop)

    def _end(self, loop: asyncio.AbstractEventLoop) -> None:
        self._began_at, owners = None, set[Task]()
        while self._waiting and len(owners) < MAX_OWNERS:
            turn = self._waiting.popleft()
            if not turn.comes.done():  # its request may have been cancelled
                turn.comes.set_result(None)
                owners.add(turn.task)
        if owners:
            self._begin(loop, owners)


let_others_run = TimeSlices().let_others_run
