"""Writers: each runs random operations one after the other and records what it was answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import cycle
from typing import Any

from tests.history.observing import FIELDS, TITLES, linked
from tests.history.recording import Creation, Key
from tests.history.requests import Answer, Client
from tests.history.services import Service
from tests.history.world import COUNTED, POOL, WRITERS, World, event_body, make_chain

LONGEST_CHAIN = 150
TWINS_EACH = 2


class Writer:
    """One of the writers; `number` says which records and fields are its own."""

    def __init__(self, client: Client, world: World, number: int) -> None:
        self.client, self.world, self.number = client, world, number
        self.history, self.rng = client.history, client.rng
        self.own: list[dict[str, Any]] = []
        """Events that this writer has created and may change."""
        self.doomed: list[tuple[int, int, int]] = []
        """Categories to delete, with their child and their parent."""

    async def run(self, stop: asyncio.Event) -> None:
        operations: dict[Callable[[], Awaitable[None]], int] = {
            self.create: 8,
            self.create_twins: 2,
            self.update_fields: 4,
            self.append: 5,
            self.trash_or_restore: 4,
            self.trash_or_restore_venue: 2,
            self.rename: 5,
            self.move: 3,
            self.move_crosswise: 2,
            self.retag: 2,
            self.delete_tag: 1,
            self.grow_or_cut: 2,
        }
        while not stop.is_set():
            (operation,) = self.rng.choices([*operations], [*operations.values()])
            await operation()
            await asyncio.sleep(self.rng.uniform(0.05, 0.4))

    # Creations

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
        """The same title at the same time through both services."""
        creation = Creation(f"Twin {self.history.number()}", twins=TWINS_EACH * len(self.client.services))
        body = event_body(creation.title, tags=[f"Pool {self.rng.randrange(POOL)}"])
        targets = [service for service in self.client.services for _ in range(TWINS_EACH)]
        self.history.creations.append(creation)
        answers = await asyncio.gather(
            *(self.client.send("create twin", "POST", "/events", body, service=one) for one in targets)
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

    # Updates

    async def write(
        self,
        operation: str,
        key: Key,
        value: Any,
        body: dict[str, Any],
        may: tuple[int, ...] = (),
        service: Service | None = None,
    ) -> Answer:
        """Update one register; an acknowledgement must show the new value."""
        plural, id, name = key
        self.history.begin(key, value)
        answer = await self.client.send(operation, "PATCH", f"/{plural}/{id}", body, may, service)
        self.history.end(key, value, answer.outcome)
        if answer.is_done and name != "tags":
            shown = answer.body[name]
            self.history.expect(shown == value, f"{key}: {value!r} was acknowledged as {shown!r}")
        return answer

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

    # Deletions

    def some_own(self) -> dict[str, Any] | None:
        published = [one for one in self.own if self.status("events", one["id"]) == "publish"]
        return self.rng.choice(published) if published else None

    def status(self, plural: str, id: int) -> Any:
        register = self.history.registers[plural, id, "status"]
        return "unknown" if register.possible else register.value

    async def trash_or_restore(self) -> None:
        if self.own:
            await self.toggle("events", self.rng.choice(self.own)["id"])

    async def trash_or_restore_venue(self) -> None:
        halls = [venue["id"] for one in self.own for venue in linked(one)["venues"]]
        if own := [id for id in halls if ("venues", id, "status") in self.history.registers]:
            await self.toggle("venues", self.rng.choice(own))

    async def toggle(self, plural: str, id: int) -> None:
        """Delete what is published, and restore the rest. A deletion that was applied without an answer is
        refused with 410 when it is sent again."""
        key = (plural, id, "status")
        status = self.status(plural, id)
        if status == "trash" or (status == "unknown" and self.rng.random() < 0.5):
            await self.write(f"restore {plural}", key, "publish", {"status": "publish"})
            return
        register = self.history.begin(key, "trash")
        may = (410,) if register.possible.count("trash") > 1 or register.value == "trash" else ()
        answer = await self.client.send(f"trash {plural}", "DELETE", f"/{plural}/{id}", None, may)
        outcome = "acknowledged" if answer.status == 410 else answer.outcome
        self.history.end(key, "trash", outcome)

    async def delete_tag(self) -> None:
        if self.world.pool:
            name = self.rng.choice([*self.world.pool])
            await self.delete_term("tags", self.world.pool[name])

    async def delete_term(self, plural: str, id: int) -> Answer:
        """Delete a term; others may do the same, but only one is acknowledged."""
        may = (404,) if (plural, id) in self.history.deleting else ()
        self.history.deleting.add((plural, id))
        answer = await self.client.send(f"delete {plural}", "DELETE", f"/{plural}/{id}", None, may)
        if answer.is_done:
            once = (plural, id) not in self.history.deleted
            self.history.expect(once, f"{plural} {id}: two deletions were acknowledged")
            self.history.deleted[plural, id] = self.history.tick()
        return answer

    async def grow_or_cut(self) -> None:
        """Create a category with a child and an event, or delete one: its child moves to its parent."""
        if len(self.doomed) < 2:
            await self.grow()
            return
        doomed, child, parent = self.doomed.pop(0)
        key = ("categories", child, "parent")
        self.history.begin(key, parent)
        answer = await self.delete_term("categories", doomed)
        self.history.end(key, parent, answer.outcome)

    async def grow(self) -> None:
        number, parent = self.history.number(), self.rng.choice(self.world.branches)
        made: list[int] = []
        for name in (f"Doomed {number}", f"Child {number}"):
            body = {"name": name, "parent": made[-1] if made else parent}
            answer = await self.client.send("create category", "POST", "/categories", body)
            if not answer.is_done:
                return
            self.history.new_id("categories", answer.body["id"], name)
            made.append(answer.body["id"])
        doomed, child = made
        self.history.register(("categories", child, "parent"), doomed)
        self.doomed.append((doomed, child, parent))
        creation = Creation(f"Event {number}")
        await self.send_creation(creation, event_body(creation.title, categories=[doomed, child]))


def tag_ids(event: dict[str, Any]) -> frozenset[int]:
    return frozenset(tag["id"] for tag in event["tags"])
