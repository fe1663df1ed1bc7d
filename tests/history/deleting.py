"""Operations that delete and restore."""

from __future__ import annotations

from tests.history.creating import Creating
from tests.history.entries import Creation
from tests.history.observing import linked
from tests.history.requests import Answer
from tests.history.world import event_body


class Deleting(Creating):
    """Moves posts to the trash and back, and deletes terms."""

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
        self.history.deleting[plural, id] += 1
        answer = await self.client.send(f"delete {plural}", "DELETE", f"/{plural}/{id}", None, (404,))
        is_only = self.history.deleting[plural, id] == 1
        self.history.expect(not (is_only and answer.status == 404), f"{plural} {id}: is lost")
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
