"""Two service processes on the replica set."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout

from tests.history.cluster import DEADLINE
from tests.history.processes import Program, free_ports

REPOSITORY = Path(__file__).parent.parent.parent
DATABASE = "history"
NAMESPACE = "/calendar/events/v1"


class Service(Program):
    """A service process. While it starts, connections to it may fail."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.is_listening = False
        self.in_flight: Counter[str] = Counter()
        """Requests that are not answered yet, by operation."""

    def is_busy_with(self, verb: str) -> bool:
        return any(number for name, number in self.in_flight.items() if name.startswith(verb))

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def api(self) -> str:
        return f"{self.root}{NAMESPACE}"

    def kill(self) -> None:
        self.is_listening = False
        super().kill()

    async def becomes_ready(self) -> None:
        give_up = time.monotonic() + DEADLINE
        async with ClientSession(timeout=ClientTimeout(total=10)) as session:
            while not await self._is_ready(session):
                assert self.is_running, self.log.read_text()[-2000:]
                if time.monotonic() > give_up:
                    raise TimeoutError(f"{self.name} does not become ready")
                await asyncio.sleep(0.2)

    async def _is_ready(self, session: ClientSession) -> bool:
        try:
            async with session.get(f"{self.root}/health/ready") as answer:
                self.is_listening = True
                return answer.status == 200
        except (ClientError, TimeoutError):
            return False


def make_services(directory: Path, uri: str) -> list[Service]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KALENDS_")}
    settings = {"MONGODB_URI": uri, "DATABASE": DATABASE, "ACCESS_LOG": "off", "AUTH": "token"}

    def service(name: str, port: int) -> Service:
        chosen = {f"KALENDS_{key}": value for key, value in {**settings, "PORT": str(port)}.items()}
        line = [sys.executable, "-m", "service", "serve"]
        environment = {**kept, **chosen, "PYTHONPATH": str(REPOSITORY)}
        return Service(f"service {name}", port, directory / f"service-{name}.log", line, environment)

    return [service(name, port) for name, port in zip("AB", free_ports(2), strict=True)]
