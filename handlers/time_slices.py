"""Time slices: work on the event loop gives way to others, such as health checks, after a while."""

from __future__ import annotations

import asyncio
from time import monotonic

SLICE_SECONDS = 0.01
"""How long one pass of the event loop may work. Under load hundreds of requests can be ready at once."""
STALE_SECONDS = 1.0
"""An older slice is of an event loop that was closed."""


class TimeSlices:
    """The slice of the current pass: it begins with the first request that asks, and ends with the pass."""

    def __init__(self) -> None:
        self._began_at = 0.0

    async def let_others_run(self) -> None:
        """Continue in a later pass of the event loop if the slice of this one is used up."""
        while (used := monotonic() - self._began_at) > SLICE_SECONDS:
            if used > STALE_SECONDS:
                self._began_at += used
                asyncio.get_running_loop().call_soon(self._end)
                return
            await asyncio.sleep(0)  # the next pass may be used up by others that have waited longer

    def _end(self) -> None:
        self._began_at = 0.0


let_others_run = TimeSlices().let_others_run
