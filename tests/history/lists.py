"""After the faults: filtered lists and single records agree with the list of everything."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from tests.history.observing import linked
from tests.history.requests import Client
from tests.history.snapshot import Snapshot, read, read_all

SAMPLE = 12


async def check_lists(client: Client, shown: Snapshot) -> None:
    await check_filters(client, shown)
    await check_has_events(client, shown)
    await check_singles(client, shown)


async def check_filters(client: Client, shown: Snapshot) -> None:
    """Lists filtered by term, venue or organizer have exactly the published events that link to it."""
    users = users_of(shown)
    for plural, field in (
        ("categories", "categories"),
        ("tags", "tags"),
        ("venues", "venue"),
        ("organizers", "organizer"),
    ):
        usable = [id for id, record in shown[plural].items() if record.get("status") != "trash"]
        for id in client.rng.sample(usable, min(len(usable), SAMPLE)):
            query = f"{field}={id}&starts_after=2000-01-01"
            found = {event["id"] for event in await read_all(client, shown.service, "events", query)}
            among = {id, *below(id, shown["categories"])} if plural == "categories" else {id}
            right = {event for one in among for event in users[plural, one]}
            client.history.expect(
                found == right, f"{shown.service.name}: events?{query}: {found ^ right} are wrong or missing"
            )


def users_of(shown: Snapshot) -> Mapping[tuple[str, int], set[int]]:
    """The published events that link to each record."""
    users: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
    for id, event in shown["events"].items():
        if event["status"] == "publish":
            for plural, copies in linked(event).items():
                for copy in copies:
                    users[plural, copy["id"]].add(id)
    return users


def below(id: int, categories: Mapping[int, dict[str, Any]]) -> set[int]:
    """All descendants of a category."""
    found, wanted = set[int](), {id}
    while wanted:
        wanted = {child for child, category in categories.items() if category["parent"] in wanted} - found
        found |= wanted
    return found


async def check_has_events(client: Client, shown: Snapshot) -> None:
    users = users_of(shown)
    for plural in ("venues", "organizers"):
        live = {id for id, record in shown[plural].items() if record["status"] == "publish"}
        used = {id for id in live if users[plural, id]}
        for query, right in (
            ("has_events=1", used),
            ("has_events=0", live - used),
            ("only_with_upcoming=1", used),
        ):
            found = {one["id"] for one in await read_all(client, shown.service, plural, query)}
            client.history.expect(
                found == right,
                f"{shown.service.name}: {plural}?{query}: {found ^ right} are wrong or missing",
            )


async def check_singles(client: Client, shown: Snapshot) -> None:
    """A single record, by id and by slug, is the one in the list."""
    events = [event for event in shown["events"].values() if event["status"] == "publish"]
    for event in client.rng.sample(events, min(len(events), SAMPLE)):
        for path in (f"/events/{event['id']}", f"/events/by-slug/{event['slug']}"):
            single = await read(client, shown.service, path)
            single.pop("json_ld", None)
            client.history.expect(single == event, f"{shown.service.name}: {path} differs from the list")
