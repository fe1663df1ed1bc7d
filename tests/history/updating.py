"""Operations that update events, rename records and move categories."""

from __future__ import annotations

import asyncio
from itertools import cycle

from tests.history.actors import Actor
from tests.history.observing import FIELDS, TITLES
from tests.history.requests import Answer
from tests.history.services import Service
from tests.history.world import WRITERS, make_chain

LONGEST_CHAIN = 150


class Updating(Actor):
    """Updates records, often several at once through both services."""

    async def update_fields(self) -> None:
        """Update all fields of the writer's own event at once, through both services: none undoes another."""
        id = self.world.shared_events[self.number]
        values = {
            name: ("https://example.org/" if name == "website" else "Text ") + f"v{self.history.number()}"
            for name in FIELDS
        }
        await asyncio.gather(
            *(
                self.write(f"update {name}", ("events", id, name), value, {name: value}, service=service)
                for (name, value), service in zip(values.items(), cycle(self.client.services), strict=False)
            )
        )

    async def rename(self) -> None:
        plural = self.rng.choice([*self.world.named])
        title, id = TITLES[plural], self.world.named[plural][self.number]
        value = f"Shared {plural} {self.number} v{self.history.number()}"
        await self.write(f"rename {plural}", (plural, id, title), value, {title: value})

    async def move(self) -> None:
        own = self.rng.choice(self.world.branches[self.number :: WRITERS])
        await self.move_below(own, self.rng.choice([0, *(id for id in self.world.branches if id != own)]))

    async def move_below(self, own: int, parent: int, service: Service | None = None) -> Answer:
        may = (400,) if parent else ()  # it may be a descendant
        key = ("categories", own, "parent")
        return await self.write("move", key, parent, {"parent": parent}, may, service)

    async def move_crosswise(self) -> None:
        """Move each of two categories below the other at the same time: one of them must be refused."""
        first, second = self.world.branches[self.number :: WRITERS]
        for own in (first, second):
            await self.move_below(own, 0)
        answers = await asyncio.gather(
            self.move_below(first, second, self.client.services[0]),
            self.move_below(second, first, self.client.services[1]),
        )
        is_right = not all(answer.is_done for answer in answers)
        self.history.expect(is_right, f"categories {first} and {second}: each was moved below the other")

    async def retag(self) -> None:
        """Replace the tags of an event: the counts of the old and the new ones change."""
        if event := self.some_own():
            tags = self.rng.sample(self.world.named["tags"], 2)
            await self.write("retag", ("events", event["id"], "tags"), frozenset(tags), {"tags": tags})

    async def append(self) -> None:
        """Read a chain, and append tokens on the condition that nobody has changed the event meanwhile: of
        several writers, two through each service, at most one may succeed."""
        place = self.rng.randrange(len(self.world.chains))
        id = self.world.chains[place]
        read = await self.client.send("read chain", "GET", f"/events/{id}")
        if read.is_done:
            answers = await asyncio.gather(
                *(self.append_token(id, read, service) for service in 2 * self.client.services)
            )
            done = [answer.etag for answer in answers if answer.is_done]
            self.history.expect(len(done) <= 1, f"event {id}: {read.etag} was followed by each of {done}")
        if len(self.history.chains[id].acknowledged) >= LONGEST_CHAIN:
            await make_chain(self.client, self.world, place)

    async def append_token(self, id: int, read: Answer, service: Service) -> Answer:
        token, chain = f"{self.number}.{self.history.number()}", self.history.chains[id]
        body = {"description": f"{read.body['description']} {token}"}
        answer = await self.client.send(
            "append", "PATCH", f"/events/{id}", body, (412,), service, headers={"If-Match": read.etag}
        )
        if answer.is_done:
            chain.acknowledged.append(token)
            version = answer.etag.partition("-")[0]
            self.history.expect(version not in chain.versions, f"event {id}: two writers made {answer.etag}")
            chain.versions.add(version)
            is_shown = answer.body["description"].endswith(token)
            self.history.expect(is_shown, f"event {id}: {token} was acknowledged without being shown")
        elif answer.outcome == "refused":
            chain.refused.append(token)
        return answer
