"""A replica set of three real mongod processes."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from pymongo import MongoClient
from pymongo.errors import PyMongoError

from service.embedded.program import find_program
from tests.history.processes import Program, free_ports

SET = "history"
DEADLINE = 120.0
ELECTION_MILLISECONDS = 2000


class Cluster:
    """Three members, of which one may be down or paused at a time."""

    def __init__(self, members: list[Program]) -> None:
        self.members = members

    @property
    def uri(self) -> str:
        hosts = ",".join(f"127.0.0.1:{member.port}" for member in self.members)
        return f"mongodb://{hosts}/?replicaSet={SET}"

    async def start(self) -> None:
        for member in self.members:
            member.start()
        await asyncio.gather(*(self._answers(member) for member in self.members))
        hosts = [{"_id": n, "host": f"127.0.0.1:{one.port}"} for n, one in enumerate(self.members)]
        settings = {"electionTimeoutMillis": ELECTION_MILLISECONDS, "heartbeatIntervalMillis": 500}
        config = {"_id": SET, "members": hosts, "settings": settings}
        await command(self.members[0], "replSetInitiate", config)
        await self.is_whole()

    def kill(self) -> None:
        for member in self.members:
            member.kill()

    async def primary(self) -> Program:
        """The member that is primary now; waits for an election."""
        give_up = time.monotonic() + DEADLINE
        while time.monotonic() < give_up:
            for member in self.members:
                if (await self.state(member)) == "primary":
                    return member
            await asyncio.sleep(0.1)
        raise TimeoutError("the replica set has no primary")

    async def is_whole(self) -> None:
        """Return when there are a primary and two secondaries."""
        give_up = time.monotonic() + DEADLINE
        while sorted([await self.state(member) for member in self.members]) != WHOLE:
            if time.monotonic() > give_up:
                raise TimeoutError("the replica set is not whole again")
            await asyncio.sleep(0.2)

    async def state(self, member: Program) -> str:
        if member.is_paused or not member.is_running:
            return "down"
        try:
            hello = await command(member, "hello")
        except PyMongoError:
            return "down"
        return "primary" if hello["isWritablePrimary"] else "secondary" if hello.get("secondary") else "other"

    async def step_down(self) -> None:
        await command(await self.primary(), "replSetStepDown", 10, secondaryCatchUpPeriodSecs=5)

    async def _answers(self, member: Program) -> None:
        give_up = time.monotonic() + DEADLINE
        while (await self.state(member)) == "down":
            assert member.is_running or member.kills, member.log.read_text()[-2000:]
            if time.monotonic() > give_up:
                raise TimeoutError(f"{member.name} does not answer")
            await asyncio.sleep(0.1)


WHOLE = ["primary", "secondary", "secondary"]


async def command(member: Program, name: str, value: Any = 1, **options: Any) -> dict[str, Any]:
    """Run a command on one member; in a thread, because the asynchronous client leaks refused sockets."""

    def run() -> dict[str, Any]:
        limits = "directConnection=true&serverSelectionTimeoutMS=1000&socketTimeoutMS=15000"
        with MongoClient[dict[str, Any]](f"mongodb://127.0.0.1:{member.port}/?{limits}") as client:
            return client.admin.command(name, value, **options)

    return await asyncio.to_thread(run)


async def make_cluster(directory: Path) -> Cluster:
    program = await find_program()
    engine = "internalQueryForceClassicEngine=true"
    if program.major >= 7:
        engine = "internalQueryFrameworkControl=forceClassicEngine"

    def member(number: int, port: int) -> Program:
        data = directory / f"member-{number}"
        data.mkdir(parents=True)
        line = [
            str(program.path),
            *("--dbpath", str(data), "--replSet", SET, "--port", str(port), "--bind_ip", "127.0.0.1"),
            *("--nounixsocket", "--noscripting", "--networkMessageCompressors", "disabled"),
            *("--setParameter", engine, "--setParameter", "diagnosticDataCollectionEnabled=false"),
            *("--wiredTigerCacheSizeGB", "0.25", "--oplogSize", "128", "--quiet"),
        ]
        return Program(f"mongod {number}", port, directory / f"mongod-{number}.log", line, {})

    return Cluster([member(number, port) for number, port in enumerate(free_ports(3))])
