"""Work in threads that must end before a restore that is told to stop removes what it has begun."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVarTuple

Arguments = TypeVarTuple("Arguments")


async def complete_in_thread(work: Callable[[*Arguments], None], *arguments: *Arguments) -> None:
    """Call a function in a thread, and wait for its end even if this task is cancelled: what the thread still
    does must not come after the clean-up."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        await asyncio.shield(running)
    finally:
        await asyncio.wait({running})
