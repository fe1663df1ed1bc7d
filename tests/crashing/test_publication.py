"""A service dies at every point of the publication of what is due; the next one publishes the rest, once."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tests.conftest import Api
from tests.crashing.driver import Driver
from tests.crashing.dying import Point
from tests.crashing.operations import Numbered, ids, read, succeeds

pytestmark = pytest.mark.slow

LATER = "2090-01-01 00:00:00"
PAST = datetime(2026, 1, 1)


class Publication(Numbered):
    """A venue, an event there and another event are due."""

    async def begin(self, api: Api) -> None:
        await super().begin(api)
        later: Any = {"status": "future", "date_utc": LATER}
        self.venue = (await api.made("venues", venue=self.name("Hall"), **later))["id"]
        self.category = (await api.made("categories", name=self.name("Jazz")))["id"]
        links: Any = [{"venue": self.venue}, {"categories": [self.category]}]
        self.events = [(await api.event(self.name("Concert"), **later, **links[at]))["id"] for at in range(2)]

    async def come_due(self, api: Api) -> None:
        """As if the date had come, also in the copies of the venue."""
        database, copies = api.store.database, {"venue.$[].date_utc": PAST}
        await database["events"].update_one({"_id": self.events[0]}, {"$set": copies})
        for plural in ("venues", "events"):
            await database[plural].update_many({"status": "future"}, {"$set": {"date_utc": PAST}})

    async def perform(self, api: Api) -> None:
        raise AssertionError("the restarted service has not published what is due")

    async def is_done(self, api: Api) -> bool:
        records = [await read(api, f"/venues/{self.venue}")]
        records += [await read(api, f"/events/{id}") for id in self.events]
        assert [record["status"] for record in records] == ["publish"] * 3
        assert records[1]["venue"]["id"] == self.venue
        assert ids((await succeeds(api, "GET", f"/events?venue={self.venue}"))["events"]) == self.events[:1]
        assert (await read(api, f"/categories/{self.category}"))["count"] == 1
        return True

    async def versions(self, api: Api) -> list[int]:
        """Created and published; and the first event has got the copy of the published venue."""
        database = api.store.database
        rows = [await database["venues"].find_one({"_id": self.venue})]
        rows += [await database["events"].find_one({"_id": id}) for id in self.events]
        return [row["version"] for row in rows if row]


async def test_publication(driver: Driver) -> None:
    operation = Publication()
    for points in driver.series(waits=True):
        for point in points:
            async with driver.victims.serve() as (_, api):
                await driver.begin(operation, api)
            await operation.come_due(api)
            if not await dies(driver, point):
                break
            async with driver.victims.serve() as (_, api):
                await driver.check(operation, api, acknowledged=True)
                assert await operation.versions(api) == [2, 3, 2]
    assert driver.victims.seen.total() >= 10
    assert driver.victims.jobs_left


async def dies(driver: Driver, point: Point) -> bool:
    """Whether a service dies in its first background maintenance."""
    async with driver.victims.start("serve", point=point) as victim:
        await victim.becomes(lambda: victim.has_died or (victim.maintained.is_set() and victim.is_idle))
        if victim.has_died:
            await driver.victims.note_death(victim)
        return victim.has_died
