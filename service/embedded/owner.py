"""The lock that lets only one process at a time run mongod on a data directory."""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO

from service.embedded.directory import Directory
from service.embedded.errors import EmbeddedError

OWNER_EXIT_SECONDS = 3.0
MONGOD_EXIT_SECONDS = 30.0
POLL_SECONDS = 0.03


@asynccontextmanager
async def owned(directory: Directory) -> AsyncIterator[None]:
    """Hold the directory's lock, with everything in place for mongod to start."""
    with directory.reporting_os_errors():
        directory.make_private()
        lock = directory.lock.open("a+")
    with lock:
        await _wait_for_ownership(directory, lock)
        try:
            await _wait_for_dying_mongod(directory)
            with directory.reporting_os_errors():
                directory.make_contents()
                _publish(lock, f"{os.getpid()}\n{directory.client_socket}\n")
            yield
        finally:
            _publish(lock, "")
            # Processes forked meanwhile share the lock: closing the file alone would not release it.
            fcntl.flock(lock, fcntl.LOCK_UN)
            directory.remove_socket_directory()


def owner_uri(directory: Directory) -> str | None:
    """The URI of the mongod that the lock's owner runs; None if the lock is free."""
    with directory.reporting_os_errors():
        if not directory.lock.exists():
            return None
        with directory.lock.open() as lock:
            owner = None if _try_lock(lock, fcntl.LOCK_SH) else _owner(lock)
        return directory.uri(owner[1]) if owner else None


async def _wait_for_ownership(directory: Directory, lock: IO[str]) -> None:
    """Wait for the lock if its owner is just exiting; a running owner is an error at once."""
    deadline = time.monotonic() + OWNER_EXIT_SECONDS
    while not _try_lock(lock, fcntl.LOCK_EX):
        owner = _owner(lock)
        if (owner and _is_alive(owner[0])) or time.monotonic() > deadline:
            process = f"process {owner[0]}" if owner else "another process"
            raise EmbeddedError(
                f"{directory.root} is in use by {process}; stop it or choose another KALENDS_DATA_DIR"
            )
        await asyncio.sleep(POLL_SECONDS)


async def _wait_for_dying_mongod(directory: Directory) -> None:
    """Wait for a mongod whose service was killed and that is still shutting down."""
    deadline = time.monotonic() + MONGOD_EXIT_SECONDS
    while pid := _mongod_pid(directory):
        if time.monotonic() > deadline:
            raise EmbeddedError(f"mongod (process {pid}) is still running in {directory.root}: stop it first")
        await asyncio.sleep(POLL_SECONDS)


def _mongod_pid(directory: Directory) -> str | None:
    # mongod holds this lock as long as it runs, even after its service has died.
    path = directory.db / "mongod.lock"
    with directory.reporting_os_errors():
        if not path.exists():
            return None
        with path.open() as lock:
            return None if _try_lock(lock, fcntl.LOCK_SH) else lock.read().strip() or "unknown"


def _try_lock(lock: IO[str], kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _owner(lock: IO[str]) -> tuple[int, Path] | None:
    lock.seek(0)
    lines = lock.read().splitlines()
    return (int(lines[0]), Path(lines[1])) if len(lines) == 2 else None


def _publish(lock: IO[str], text: str) -> None:
    os.ftruncate(lock.fileno(), 0)
    os.write(lock.fileno(), text.encode())


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
