"""Everything that a service shows, read page by page over HTTP."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.history.observing import TITLES
from tests.history.requests import Client
from tests.history.services import Service

ALL = {
    "events": "status=publish,trash&starts_after=2000-01-01",
    "venues": "status=publish,trash",
    "organizers": "status=publish,trash",
    "categories": "hide_empty=0",
    "tags": "hide_empty=0",
}
PER_PAGE = 40
Records = dict[int, dict[str, Any]]


class NotShown(Exception):
    """A service does not answer although nothing is wrong any more."""


@dataclass
class Snapshot:
    """All records of all kinds, by id."""

    service: Service
    kinds: dict[str, Records]

    def __getitem__(self, plural: str) -> Records:
        return self.kinds[plural]

    def without_host(self) -> Any:
        """The records with links that do not depend on the service's port."""
        text = json.dumps(self.kinds, sort_keys=True)
        return json.loads(text.replace(f"127.0.0.1:{self.service.port}", "HOST"))


async def read(client: Client, service: Service, path: str) -> Any:
    answer = await client.send("final read", "GET", path, service=service)
    if not answer.is_done:
        raise NotShown(f"{service.name}: {path} answers {answer.status} after the faults: {answer.body}")
    return answer.body


async def read_all(client: Client, service: Service, plural: str, query: str) -> list[dict[str, Any]]:
    """All records of a list; its total must be their number, and none may be on two pages."""
    found: list[dict[str, Any]] = []
    page, pages = 1, 1
    while page <= pages:
        path = f"/{plural}?{query}&per_page={PER_PAGE}&page={page}"
        body = await read(client, service, path)
        found += body[plural]
        page, pages, total = page + 1, body["total_pages"], body["total"]
    expect = client.history.expect
    expect(total == len(found), f"{service.name}: {plural}?{query} has {len(found)}, not {total} records")
    twice = len(found) - len({record["id"] for record in found})
    expect(not twice, f"{service.name}: {plural}?{query} shows {twice} records twice")
    return found


async def take_snapshot(client: Client, service: Service) -> Snapshot:
    kinds = {plural: await read_all(client, service, plural, ALL[plural]) for plural in TITLES}
    return Snapshot(service, {plural: {one["id"]: one for one in many} for plural, many in kinds.items()})
