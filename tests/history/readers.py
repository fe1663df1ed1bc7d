"""Readers: they read records and lists through both services, and every answer is checked at once."""

from __future__ import annotations

import asyncio

from tests.history.requests import Client
from tests.history.world import World

RECENT = 40


class Reader:
    """A client that only reads."""

    def __init__(self, client: Client, world: World) -> None:
        self.client, self.world, self.history, self.rng = client, world, client.history, client.rng

    async def run(self, stop: asyncio.Event) -> None:
        operations = [self.read_one, self.read_created, self.read_list, self.read_included, self.read_count]
        while not stop.is_set():
            # During a fault, look at what is written without being acknowledged: it may be lost.
            is_urgent = self.history.calm_since is None and self.rng.random() < 0.5
            await (self.read_written() if is_urgent else self.rng.choice(operations)())
            await asyncio.sleep(self.rng.uniform(0.05, 0.3))

    async def read_written(self) -> None:
        ids = self.world.shared_events + self.world.chains
        path = f"/events?include={','.join(map(str, ids))}" if self.rng.random() < 0.3 else ""
        await self.client.send("read", "GET", path or f"/events/{self.rng.choice(ids)}")

    async def read_one(self) -> None:
        """A record that many write, and that is never deleted."""
        named = {**self.world.named, "events": self.world.shared_events + self.world.chains}
        plural = self.rng.choice([*named, "branches"])
        ids = self.world.branches if plural == "branches" else named[plural]
        path = "categories" if plural == "branches" else plural
        await self.client.send("read", "GET", f"/{path}/{self.rng.choice(ids)}")

    def recent(self) -> list[int]:
        creations = self.history.creations[-RECENT:]
        return [event["id"] for creation in creations for event in creation.acknowledged]

    def is_steady(self, id: int, since: int) -> bool:
        """Whether an event is known to be published, and nobody has begun to change that since then."""
        register = self.history.registers.get(("events", id, "status"))
        if register is None:
            return True
        is_idle = not register.in_flight and register.changed_at <= since
        return is_idle and not register.possible and register.value == "publish"

    async def read_created(self) -> None:
        """An acknowledged event is shown by every service, unless it is being deleted."""
        if recent := self.recent():
            id = self.rng.choice(recent)
            answer = await self.client.send("read created", "GET", f"/events/{id}", None, (410,))
            if answer.status == 410:
                register = self.history.registers.get(("events", id, "status"))
                is_right = register and (register.allows("trash") or register.changed_at > answer.since)
                self.history.expect(bool(is_right), f"event {id}: answers 410, but nobody has deleted it")

    async def read_included(self) -> None:
        """A list of acknowledged events has all of them."""
        if recent := self.recent():
            ids = self.rng.sample(recent, min(len(recent), 8))
            path = f"/events?include={','.join(map(str, ids))}&per_page=50"
            since = self.history.clock
            answer = await self.client.send("read included", "GET", path)
            if answer.is_done:
                shown = [event["id"] for event in answer.body["events"]]
                missing = {id for id in ids if id not in shown and self.is_steady(id, since)}
                self.history.expect(not missing, f"events {missing}: missing in {path}")
                self.history.expect(len(set(shown)) == len(shown), f"{path} shows a record twice: {shown}")
                if all(self.is_steady(id, since) for id in ids):
                    self.history.expect(answer.body["total"] == len(ids), f"{path}: wrong total")

    async def read_list(self) -> None:
        plural = self.rng.choice([*self.world.named, "events"])
        more = "&hide_empty=0" if plural in ("categories", "tags") else ""
        path = f"/{plural}?per_page=30{more}"
        if plural == "events":
            path += "&orderby=modified&order=desc"
        await self.client.send("read list", "GET", path)

    async def read_count(self) -> None:
        """The count of a tag, and the total of its list, include every acknowledged event."""
        as_list = self.rng.random() < 0.5
        path = f"/events?tags={self.world.counted}&per_page=1" if as_list else f"/tags/{self.world.counted}"
        least = self.history.counted_acknowledged
        answer = await self.client.send("read count", "GET", path)
        if answer.is_done:
            shown, most = answer.body["total" if as_list else "count"], self.history.counted_sent
            self.history.expect(
                least <= shown <= most,
                f"{path}: shows {shown}, but {least} were acknowledged and {most} sent",
            )
