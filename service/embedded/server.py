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
from service.embedded.log import Log, how_it_ended
from service.embedded.member import became_ready
from service.embedded.program import Program
from service.guard import guarded

START_SECONDS = 120.0  # replaying a long journal is slow
STOP_SECONDS = 10.0
POLL_SECONDS = 0.02
UPKEEP_SECONDS = 3600.0
SHORTEST_PAUSE, LONGEST_PAUSE = 0.1, 30.0
STEADY_SECONDS = 60.0

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
        began = time.monotonic()
        self._directory.close_entrance()
        process = self._process = await self._spawn()
        while not await became_ready(self._directory):
            if process.returncode is not None:
                raise EmbeddedError(f"mongod did not start: {self._log.reason(process.returncode)}")
            if time.monotonic() - began > START_SECONDS:
                await self.stop()
                raise EmbeddedError(
                    f"mongod was not ready after {START_SECONDS:.0f} s: see {self._directory.log}"
                )
            await asyncio.sleep(POLL_SECONDS)
        self._directory.open_entrance()
        logger.info("mongod %d is ready after %.1f s", process.pid, time.monotonic() - began)

    async def stop(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
        except TimeoutError:
            logger.warning("mongod %d did not stop within %.0f s: killing it", process.pid, STOP_SECONDS)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def supervise(self) -> None:
        """Restart mongod whenever it dies, with exponential backoff."""
        pause = SHORTEST_PAUSE
        while True:
            began = time.monotonic()
            status = await self._exit_status()
            if time.monotonic() - began > STEADY_SECONDS:
                pause = SHORTEST_PAUSE
            logger.warning("mongod exited (%s): restarting it", how_it_ended(status))
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
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
            with suppress(TimeoutError):
                return await asyncio.wait_for(self._process.wait(), UPKEEP_SECONDS)
            self._upkeep()

    def _upkeep(self) -> None:
        with suppress(OSError):
            self._log.trim()
            # Cleanup jobs for temporary directories delete files that have not been touched for days.
            self._directory.socket.touch()
            os.utime(self._directory.entrance, follow_symlinks=False)

    async def _spawn(self) -> Process:
        self._log.trim()
        with self._log.opened() as log:
            # A separate session: Ctrl-C must reach only the service, which closes its connections first.
            return await asyncio.create_subprocess_exec(
                *guarded(*self._program.command(self._directory)),
                cwd=self._directory.socket.parent,
                stdin=DEVNULL,
                stdout=log,
                stderr=STDOUT,
                start_new_session=True,
            )
