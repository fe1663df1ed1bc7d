"""Mirrors: they begin with the lists, follow the change feed through both services, and are compared at the
end with what the lists show."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tests.history.requests import Client
from tests.history.world import World
from tests.mirror import KINDS, Mirror

PAUSE_SECONDS = 0.5


class NotAnswered(Exception):
    """The connection was lost, or there is a fault."""


class Follower:
    """A client that keeps a mirror."""

    def __init__(self, client: Client, name: str, filter: str = "") -> None:
        self.client, self.name = client, name
        self.mirror = Mirror(("events",) if filter else KINDS, filter, limit=40)

    async def get(self, path: str) -> Any:
        """The body of a response, with links that do not depend on the service's port."""
        service = self.client.rng.choice(self.client.services)
        answer = await self.client.send(f"mirror {self.name}", "GET", path, service=service)
        if not answer.is_done:
            raise NotAnswered
        return json.loads(json.dumps(answer.body).replace(f"127.0.0.1:{service.port}", "HOST"))

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await asyncio.sleep(PAUSE_SECONDS)
            try:
                await self.mirror.follow(self.get)
            except NotAnswered:
                continue

    async def check(self) -> None:
        await self.mirror.follow(self.get)
        found = await self.mirror.differences(self.get)
        self.client.history.expect(not found, f"mirror {self.name}: (list, mirror) differ: {found}")
        self.client.history.expect(bool(self.mirror.told), f"mirror {self.name}: was told nothing")


def followers(admin: Client, anonymous: Client, world: World) -> list[Follower]:
    """Of everything, of a category and a venue that events enter and leave, and of an anonymous reader."""
    return [
        Follower(admin, "all"),
        Follower(admin, "category", f"categories={world.named['categories'][0]}"),
        Follower(admin, "branch", f"categories={world.branches[0]}"),
        Follower(anonymous, "anonymous"),
        Follower(anonymous, "anonymous venue", f"venue={world.named['venues'][0]}"),
    ]
