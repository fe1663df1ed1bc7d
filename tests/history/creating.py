"""Operations that create events, with venues, tags and categories."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.history.actors import Actor
from tests.history.entries import Creation
from tests.history.observing import linked
from tests.history.requests import Answer
from tests.history.world import COUNTED, POOL, event_body

TWINS_EACH = 2


class Creating(Actor):
    """Creates events; what only one event uses is named after it."""

    async def create(self) -> None:
        number, rng = self.history.number(), self.rng
        creation = Creation(f"Event {number}", is_counted=rng.random() < 0.3)
        body = event_body(creation.title, tags=[], categories=[rng.choice(self.world.branches)])
        if creation.is_counted:
            body["tags"].append(COUNTED)
        if rng.random() < 0.5:
            body["tags"].append(f"Pool {rng.randrange(POOL)}")
        if rng.random() < 0.3:
            creation.only_tag = f"Only {number}"
            body["tags"].append(creation.only_tag)
        body["venue"] = rng.choice(self.world.named["venues"])
        body["organizer"] = [rng.choice(self.world.named["organizers"])]
        if rng.random() < 0.5:
            creation.hall = f"Hall {number}"
            body["venue"] = {"venue": creation.hall, "city": "Oslo"}
        await self.send_creation(creation, body)

    async def create_twins(self) -> None:
        """The same title at the same time through both services, in half of the cases each with a venue."""
        number, targets = self.history.number(), TWINS_EACH * self.client.services
        creation = Creation(f"Twin {number}", twins=len(targets))
        if self.rng.random() < 0.5:
            creation.hall = f"Hall {number}"
        bodies = [event_body(creation.title, tags=[f"Pool {self.rng.randrange(POOL)}"]) for _ in targets]
        for twin, body in enumerate(bodies if creation.hall else ()):
            body["venue"] = {"venue": f"{creation.hall}.{twin}"}
        self.history.creations.append(creation)
        answers = await asyncio.gather(
            *(
                self.client.send("create twin", "POST", "/events", body, service=service)
                for body, service in zip(bodies, targets, strict=True)
            )
        )
        for answer in answers:
            self.take_creation(creation, answer)

    async def send_creation(self, creation: Creation, body: dict[str, Any]) -> None:
        self.history.creations.append(creation)
        self.history.counted_sent += creation.is_counted
        answer = await self.client.send("create", "POST", "/events", body)
        self.history.counted_acknowledged += creation.is_counted and answer.is_done
        self.take_creation(creation, answer)

    def take_creation(self, creation: Creation, answer: Answer) -> None:
        creation.refused += answer.outcome == "refused"
        if not answer.is_done:
            return
        event = answer.body
        creation.acknowledged.append(event)
        self.history.new_id("events", event["id"], creation.title)
        self.history.new_slug(event["slug"], creation.title)
        key = ("events", event["id"])
        self.history.register((*key, "status"), "publish")
        if creation.hall:
            (venue,) = linked(event)["venues"]
            self.history.new_id("venues", venue["id"], creation.title)
            self.history.register(("venues", venue["id"], "status"), "publish")
        self.world.pool |= {tag["name"]: tag["id"] for tag in event["tags"] if tag["name"].startswith("Pool")}
        if not creation.is_counted:
            self.history.register((*key, "tags"), tag_ids(event))
            self.own.append(event)


def tag_ids(event: dict[str, Any]) -> frozenset[int]:
    return frozenset(tag["id"] for tag in event["tags"])
