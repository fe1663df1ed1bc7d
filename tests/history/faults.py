"""Faults in random order, with time to work in between; the seed decides all of it."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from random import Random

from pymongo.errors import PyMongoError

from tests.history.cluster import Cluster
from tests.history.recording import History
from tests.history.services import Service


class Faults:
    """Injects one fault after the other; each is healed before the next."""

    def __init__(self, cluster: Cluster, services: list[Service], history: History, rng: Random) -> None:
        self.cluster, self.services, self.history, self.rng = cluster, services, history, rng
        self.injected: list[str] = []

    async def run(self, stop: asyncio.Event) -> None:
        """Inject all faults in random order, again and again; each at least once, unless a check fails."""
        while True:
            for kind in self.rng.sample(KINDS, len(KINDS)):
                if stop.is_set() and (self.history.violations or len(self.injected) >= len(KINDS)):
                    return
                await asyncio.sleep(self.rng.uniform(1, 3))
                self.injected.append(kind.__name__)
                self.history.calm_since = None
                self.history.note("fault", kind.__name__)
                await kind(self)
                await self.heal()

    async def heal(self) -> None:
        """Restart whatever is down; a majority of the replica set must be there before the next fault."""
        for member in self.cluster.members:
            if member.is_paused:
                member.resume()
            if not member.is_running:
                member.start()
        for service in self.services:
            if not service.is_running:
                service.start()
        await self.cluster.is_whole()
        await asyncio.gather(*(service.becomes_ready() for service in self.services))
        self.history.note("fault", "healed")
        self.history.calm_since = self.history.tick()

    async def kill_primary(self) -> None:
        (await self.cluster.primary()).kill()
        await asyncio.sleep(self.rng.uniform(0, 4))

    async def kill_service(self) -> None:
        await self.kill_during("rename", self.rng.choice(self.services))
        await asyncio.sleep(self.rng.uniform(0, 2))

    async def kill_primary_and_service(self) -> None:
        primary = await self.cluster.primary()
        await self.kill_during("create", self.rng.choice(self.services))
        primary.kill()
        await asyncio.sleep(self.rng.uniform(0, 4))

    async def kill_during(self, verb: str, service: Service) -> None:
        """Kill a service while it creates an event, or brings a new name into events, if it soon does."""
        give_up = time.monotonic() + 5
        while not service.is_busy_with(verb) and time.monotonic() < give_up:
            await asyncio.sleep(0.005)
        await asyncio.sleep(self.rng.uniform(0, 0.08))
        service.kill()

    async def pause_member(self) -> None:
        """Pause the primary, or sometimes another member, for longer than an election takes."""
        primary = await self.cluster.primary()
        member = primary if self.rng.random() < 0.7 else self.rng.choice(self.cluster.members)
        member.pause()
        await asyncio.sleep(self.rng.uniform(5, 15))
        member.resume()

    async def step_down(self) -> None:
        primary = await self.cluster.primary()
        while await self.cluster.primary() is primary:
            # It is refused while no secondary is up to date.
            with suppress(PyMongoError):
                await self.cluster.step_down()

    async def kill_isolated_primary(self) -> None:
        """Pause both secondaries, then kill the primary: what only the primary had is lost. Writes with
        majority write concern are not acknowledged meanwhile."""
        primary = await self.cluster.primary()
        others = [member for member in self.cluster.members if member is not primary]
        for member in others:
            member.pause()
        await asyncio.sleep(1.5)
        primary.kill()
        for member in others:
            member.resume()
        await self.cluster.primary()  # without the old one, which would still have the writes
        await asyncio.sleep(self.rng.uniform(0, 2))


KINDS = (
    Faults.kill_primary,
    Faults.kill_service,
    Faults.kill_primary_and_service,
    Faults.pause_member,
    Faults.step_down,
    Faults.kill_isolated_primary,
)
