"""What all operations of a writer share: its own records, and writing to a register."""

from __future__ import annotations

from typing import Any

from tests.history.entries import Key
from tests.history.requests import Answer, Client
from tests.history.services import Service
from tests.history.world import World


class Actor:
    """A writer; `number` says which shared records are its own."""

    def __init__(self, client: Client, world: World, number: int) -> None:
        self.client, self.world, self.number = client, world, number
        self.history, self.rng = client.history, client.rng
        self.own: list[dict[str, Any]] = []
        """Events that this writer has created and may change."""
        self.doomed: list[tuple[int, int, int]] = []
        """Categories to delete, with their child and their parent."""

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

    def some_own(self) -> dict[str, Any] | None:
        published = [one for one in self.own if self.status("events", one["id"]) == "publish"]
        return self.rng.choice(published) if published else None

    def status(self, plural: str, id: int) -> Any:
        register = self.history.registers[plural, id, "status"]
        return "unknown" if register.possible else register.value
