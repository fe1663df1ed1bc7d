"""Event passwords: stored as Argon2 hashes, which are computed off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError

from schemas.caller import Caller
from schemas.errors import PasswordNeeded


class Passwords:
    """Hashes and verifies passwords, at most two at a time, since each takes 19 MiB of memory."""

    def __init__(self) -> None:
        self._hasher = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)
        self._threads = ThreadPoolExecutor(2, "passwords")

    async def hash(self, password: str | None) -> str | None:
        if not password:
            return None
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._hasher.hash, password)

    async def check(self, record: Mapping[str, Any], caller: Caller, password: str | None) -> None:
        """Raise PasswordNeeded unless the event has no password, the caller needs none, or it is right."""
        if not (hashed := record.get("password")) or caller.bypasses_passwords:
            return
        if not password:
            raise PasswordNeeded
        try:
            loop = asyncio.get_running_loop()
            # A header may contain bytes that are not valid UTF-8.
            sent = password.encode("utf-8", "surrogatepass")
            await loop.run_in_executor(self._threads, self._hasher.verify, hashed, sent)
        except VerifyMismatchError:
            raise PasswordNeeded(was_wrong=True) from None

    def close(self) -> None:
        self._threads.shutdown(wait=False)
