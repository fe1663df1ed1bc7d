"""The threads of a process that serves requests."""

from __future__ import annotations

import asyncio
import threading

from service.process.serve import MAX_THREADS, use_threads


async def test_many_reads_can_wait_for_mongodb_at_a_time() -> None:
    """Slow ones must not keep the others from starting, however few cores there are."""
    use_threads()
    all_started = threading.Barrier(MAX_THREADS)
    async with asyncio.timeout(30):
        await asyncio.gather(*(asyncio.to_thread(all_started.wait, 20) for _ in range(MAX_THREADS)))
