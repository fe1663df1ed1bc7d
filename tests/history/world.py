"""The records that exist before the faults begin, and who may write which."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from tests.history.entries import Chain, Creation
from tests.history.observing import FIELDS, TITLES
from tests.history.requests import Client

WRITERS = 4
POOL = 4
"""Names of tags that every writer uses and deletes."""
COUNTED = "Counted"
"""A tag whose events are never changed: its count only increases."""


def event_body(title: str, **more: Any) -> dict[str, Any]:
    """An event next month; all are in the future, so that lists of upcoming events show them."""
    day = date.today() + timedelta(days=30)
    return {
        "title": title,
        "start_date": f"{day} 10:00:00",
        "end_date": f"{day} 12:00:00",
        **more,
    }


@dataclass
class World:
    """Ids of shared records. Writer n alone updates the n-th of each kind, and moves its own categories."""

    named: dict[str, list[int]] = field(default_factory=dict)
    branches: list[int] = field(default_factory=list)
    shared_events: list[int] = field(default_factory=list)
    chains: list[int] = field(default_factory=list)
    pool: dict[str, int] = field(default_factory=dict)
    counted: int = 0


async def created(client: Client, plural: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await client.send(f"create {plural}", "POST", f"/{plural}", body)
    assert answer.status == 201, answer
    client.history.new_id(plural, answer.body["id"], f"{plural} of the setup")
    return dict(answer.body)


async def make_world(client: Client) -> World:
    world, history = World(), client.history
    for plural, title in TITLES.items():
        if plural != "events":
            records = [
                await created(client, plural, {title: f"Shared {plural} {n} v0"}) for n in range(WRITERS)
            ]
            world.named[plural] = [record["id"] for record in records]
            for record in records:
                history.register((plural, record["id"], title), record[title])
    for n in range(2 * WRITERS):
        branch = await created(client, "categories", {"name": f"Branch {n} v0"})
        history.register(("categories", branch["id"], "parent"), 0)
        history.register(("categories", branch["id"], "name"), branch["name"])
        world.branches.append(branch["id"])
    for n in range(WRITERS):
        body = event_body(
            f"Shared event {n} v0", **{plural_field(p): ids[:2] for p, ids in world.named.items()}
        )
        event = await recorded_event(client, body)
        for name in FIELDS:
            history.register(("events", event["id"], name), event[name])
        world.shared_events.append(event["id"])
    for n in range(2):
        await make_chain(client, world, n)
    world.counted = (await created(client, "tags", {"name": COUNTED}))["id"]
    return world


def plural_field(plural: str) -> str:
    """The field of an event that links to the kind."""
    return {"venues": "venue", "organizers": "organizer"}.get(plural, plural)


async def recorded_event(client: Client, body: dict[str, Any]) -> dict[str, Any]:
    event = await created(client, "events", body)
    client.history.creations.append(Creation(body["title"], acknowledged=[event]))
    return event


async def make_chain(client: Client, world: World, number: int) -> None:
    body = event_body(f"Chain {client.history.number()}", description="start")
    answer = await client.send("create chain", "POST", "/events", body)
    creation = Creation(body["title"])
    client.history.creations.append(creation)
    if answer.is_done:
        creation.acknowledged.append(answer.body)
        client.history.new_id("events", answer.body["id"], creation.title)
        client.history.chains[answer.body["id"]] = Chain()
        world.chains[number : number + 1] = [answer.body["id"]]
