"""Starts the processes under test. A fork server has imported the product, so that each starts quickly."""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.context import ForkServerProcess
from multiprocessing.synchronize import Event
from pathlib import Path

from aiohttp import ClientSession, ClientTimeout

from service.store import Store
from tests.checker import LONG_AGO, until
from tests.conftest import Api
from tests.crashing.dying import Point, Trigger, run
from tests.history.processes import free_ports

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.crashing.dying"])


@dataclass
class Victim:
    """A process that dies when its trigger says so."""

    process: ForkServerProcess
    trigger: Trigger
    maintained: Event
    output: Path
    log: Path

    @property
    def has_died(self) -> bool:
        """Whether it was killed; that it ends in any other way is an error."""
        self.process.join(0)
        assert self.process.exitcode in (None, 0, -signal.SIGKILL), self.output.read_text()
        return self.process.exitcode == -signal.SIGKILL

    @property
    def is_idle(self) -> bool:
        """Whether it is armed, and waits for no reply: it has not reached the command at which it dies."""
        return self.trigger.left.value > 0 and not self.trigger.running.value

    @property
    def last_command(self) -> str:
        """The command, and its collection, before or after which it has died."""
        return self.log.read_text()

    async def becomes(self, condition: Callable[[], bool]) -> None:
        async def holds() -> bool:
            return condition()

        await until(holds, pause=0.01)

    async def ends(self) -> None:
        await self.becomes(lambda: not self.process.is_alive())


@dataclass
class Victims:
    """Starts processes on the database of a test."""

    uri: str
    store: Store
    directory: Path
    port: int = field(default_factory=lambda: free_ports(1)[0])
    """All restarts have the same address, which is in every record."""
    numbers: count[int] = field(default_factory=lambda: count(1))
    seen: Counter[str] = field(default_factory=Counter)
    """The commands before or after which a process has died."""
    last: str = "no command yet"
    jobs_left: int = 0
    """The number of fan-out jobs that processes have left when they died."""

    @asynccontextmanager
    async def start(self, *words: str, point: Point | None = None, **settings: str) -> AsyncIterator[Victim]:
        """Run `kalends` with these words; its trigger may be armed from the beginning."""
        number = next(self.numbers)
        files = self.directory / f"{number}.out", self.directory / f"{number}.log"
        trigger = Trigger(*(FORKS.RawValue("i", 0) for _ in range(5)))
        if point:
            trigger.arm(point)
        maintained = FORKS.Event()
        place = {"MONGODB_URI": self.uri, "DATABASE": self.store.database.name}
        chosen = place | {"PORT": str(self.port), **settings}
        process = FORKS.Process(target=run, args=(words, chosen, *files, trigger, maintained), daemon=True)
        process.start()
        try:
            yield Victim(process, trigger, maintained, *files)
        finally:
            process.kill()
            await asyncio.to_thread(process.join)
            process.close()

    @asynccontextmanager
    async def serve(self, **settings: str) -> AsyncIterator[tuple[Victim, Api]]:
        """A service that answers, and whose background maintenance has run."""
        async with self.start("serve", ACCESS_LOG="off", **settings) as victim:
            await victim.becomes(lambda: victim.has_died or victim.maintained.is_set())
            await victim.becomes(lambda: "Stop with Ctrl-C" in victim.output.read_text())
            async with ClientSession(f"http://127.0.0.1:{self.port}", timeout=ClientTimeout(30)) as session:
                yield victim, Api(session, self.store)  # type: ignore[arg-type]

    async def note_death(self, victim: Victim) -> None:
        """Note where it died, and let its fan-out jobs be resumed at once, not only after ten seconds."""
        self.last = victim.last_command
        self.seen[self.last] += 1
        jobs = self.store.database["fanout_jobs"]
        self.jobs_left += (await jobs.update_many({}, {"$set": {"at": LONG_AGO}})).matched_count
