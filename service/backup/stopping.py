"""Dumps and restores that are told to stop remove what they have begun."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from typing import TypeVarTuple

Arguments = TypeVarTuple("Arguments")


def stop_on_request() -> None:
    """Have SIGTERM cancel this task, so that no part of a file and no loaded collection is left."""
    if (task := asyncio.current_task()) and threading.current_thread() is threading.main_thread():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


async def complete_in_thread(work: Callable[[*Arguments], None], *arguments: *Arguments) -> None:
    """Call a function in a thread, and wait for its end even if this task is cancelled: what the thread still
    does must not come after the clean-up."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        await asyncio.shield(running)
    finally:
        await asyncio.wait({running})
