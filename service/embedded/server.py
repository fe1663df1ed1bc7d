"""The mongod process: start, supervise, restart and stop it."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from asyncio.subprocess import DEVNULL, STDOUT, Process
from contextlib import suppress

from service.embedded.directory import Directory
from service.embedded.errors import EmbeddedError
from service.embedded.log import Log, exit_reason
from service.embedded.member import became_ready
from service.embedded.program import Program
from service.process.die_with_parent import die_with_parent

START_TIMEOUT_SECONDS = 120.0  # replaying a long journal is slow
STOP_TIMEOUT_SECONDS = 10.0
POLL_SECONDS = 0.02
MAINTENANCE_SECONDS = 3600.0
MIN_RESTART_SECONDS, MAX_RESTART_SECONDS = 0.1, 30.0
STABLE_SECONDS = 60.0

logger = logging.getLogger("kalends.mongod")


class Server:
    """One mongod process on one data directory."""

    def __init__(self, directory: Directory, program: Program) -> None:
        self._directory = directory
        self._program = program
        self._log = Log(directory.log)
        self._process: Process | None = None

    async def start(self) -> None:
        """Return when mongod is primary and the service's user can authenticate."""
        started_at = time.monotonic()
        self._directory.remove_client_socket()
        process = self._process = await self._spawn()
        while not await became_ready(self._directory):
            if process.returncode is not None:
                raise EmbeddedError(f"mongod did not start: {self._log.reason(process.returncode)}")
            if time.monotonic() - started_at > START_TIMEOUT_SECONDS:
                await self.stop()
                raise EmbeddedError(
                    f"mongod was not ready after {START_TIMEOUT_SECONDS:.0f} s: see {self._directory.log}"
                )
            await asyncio.sleep(POLL_SECONDS)
        self._directory.publish_client_socket()
        logger.info("mongod %d is ready after %.1f s", process.pid, time.monotonic() - started_at)

    async def stop(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        with suppress(ProcessLookupError):  # it has just ended
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_TIMEOUT_SECONDS)
        except TimeoutError:
            logger.warning(
                "mongod %d did not stop within %.0f s: killing it", process.pid, STOP_TIMEOUT_SECONDS
            )
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def supervise(self) -> None:
        """Restart mongod whenever it dies, with exponential backoff."""
        pause = MIN_RESTART_SECONDS
        while True:
            started_at = time.monotonic()
            status = await self._exit_status()
            if time.monotonic() - started_at > STABLE_SECONDS:
                pause = MIN_RESTART_SECONDS
            logger.warning("mongod exited (%s): restarting it", exit_reason(status))
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_RESTART_SECONDS)
            await self._try_start()

    async def _try_start(self) -> None:
        try:
            await self.start()
        except Exception as error:
            logger.warning("cannot restart mongod yet: %s", error)
            await self.stop()  # it may be running, but clients cannot reach it

    async def _exit_status(self) -> int:
        if self._process is None:
            return 0
        while True:
            with suppress(TimeoutError):  # it still runs
                return await asyncio.wait_for(self._process.wait(), MAINTENANCE_SECONDS)
            self._maintain()

    def _maintain(self) -> None:
        with suppress(OSError):  # tried again next time
            self._log.trim()
            # Cleanup jobs for temporary directories delete files that have not been touched for days.
            self._directory.socket.touch()
            os.utime(self._directory.client_socket, follow_symlinks=False)

    async def _spawn(self) -> Process:
        self._log.trim()
        with self._log.opened() as log:
            # A separate session: Ctrl-C must reach only the service, which closes its connections first.
            return await asyncio.create_subprocess_exec(
                *die_with_parent(*self._program.command(self._directory)),
                cwd=self._directory.socket.parent,
                stdin=DEVNULL,
                stdout=log,
                stderr=STDOUT,
                start_new_session=True,
            )
