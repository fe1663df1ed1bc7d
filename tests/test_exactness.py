"""Two processes on one database, hammered: what one has acknowledged, the other shows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from tests.conftest import Store
from tests.samples import TIMES
from tests.test_faults import running

ROUNDS = 40
WRITERS = 4


@pytest.fixture
async def processes(tmp_path: Path, mongodb_uri: str, store: Store) -> AsyncIterator[tuple[str, str]]:
    """The addresses of two services on one database."""
    settings = {"MONGODB_URI": mongodb_uri, "DATABASE": store.database.name}
    async with running(tmp_path / "a", **settings) as one, running(tmp_path / "b", **settings) as other:
        yield one.api, other.api


async def send(session: ClientSession, method: str, address: str, **options: Any) -> Any:
    async with session.request(method, address, **options) as answer:
        body = await answer.json()
        assert answer.status in (200, 201), body
        return body


class Hammer:
    """Writes through one process and reads through the other, taking turns; many of them at a time."""

    def __init__(self, session: ClientSession, processes: tuple[str, str], number: int) -> None:
        self.session = session
        self.processes = processes
        self.number = number
        self.stale: list[Any] = []

    async def run(self) -> None:
        here = self.processes[0]
        tag = await send(self.session, "POST", f"{here}/tags", json={"name": f"Tag {self.number}"})
        event = await send(
            self.session, "POST", f"{here}/events", json=TIMES | {"title": "0", "tags": [tag["id"]]}
        )
        for round in range(1, ROUNDS):
            writer, reader = self.processes[:: 1 if round % 2 else -1]
            title = {"title": f"{self.number} round {round}"}
            await send(self.session, "PATCH", f"{writer}/events/{event['id']}", json=title)
            if round % 5 == 0:
                other = TIMES | {"title": f"Other {self.number}", "tags": [tag["id"]]}
                await send(self.session, "POST", f"{writer}/events", json=other)
            await self.look(reader, event, tag["id"], title["title"], 1 + round // 5)

    async def look(self, reader: str, event: Any, tag: int, title: str, total: int) -> None:
        """Asks for the event in every way at once, and for how many there are beside it."""
        ways = (
            f"/events/{event['id']}",
            f"/events/by-slug/{event['slug']}",
            f"/events?tags={tag}",
            f"/events?tags={tag}&orderby=modified&order=desc&per_page=50",
            f"/events?search={title.replace(' ', '+')}",
        )
        item, named, listed, ordered, found = await asyncio.gather(
            *(send(self.session, "GET", reader + way) for way in ways)
        )
        shown = [
            item,
            named,
            *(one for page in (listed, ordered, found) for one in page["events"] if one["id"] == event["id"]),
        ]
        if [one["title"] for one in shown] != [title] * 5:
            self.stale.append((title, [one["title"] for one in shown]))
        for page in (listed, ordered):
            if (page["total"], len(page["events"])) != (total, total):
                self.stale.append((title, page["total"], len(page["events"]), total))


async def test_what_one_process_acknowledged_the_other_shows(processes: tuple[str, str]) -> None:
    async with ClientSession() as session:
        hammers = [Hammer(session, processes, number) for number in range(WRITERS)]
        await asyncio.gather(*(hammer.run() for hammer in hammers))
    assert [hammer.stale for hammer in hammers] == [[]] * WRITERS
