"""A service dies while a change of a venue reaches its 10,000 events; the next one reaches the rest."""

from __future__ import annotations

import random

import pytest

from schemas import EVENT
from schemas.caller import EVERYBODY
from schemas.kind import load_valid
from service.store.links.fanout import EVENTS_PER_COMMAND
from service.store.records.creation import NewRecord
from tests.checker import differences, until
from tests.conftest import Api
from tests.crashing.driver import Driver, is_quiet, wrong_in_log
from tests.crashing.dying import AFTER, Point
from tests.crashing.operations import DAY, Numbered, succeeds

pytestmark = pytest.mark.slow

EVENTS = 10_000
BATCH = 1000
FIRST_SLICE = 4
"""About the number of the first write to events, after those to words, fan-out jobs and the venue."""


class VenueName(Numbered):
    """The venue of all events gets another name."""

    id, is_small = 0, False

    async def begin(self, api: Api) -> None:
        await super().begin(api)
        if self.id:
            return
        self.id = (await api.made("venues", venue="Old"))["id"]
        body = {"title": "Event", **DAY, "venue": self.id}
        data, problems = load_valid(EVENT.body_schema, body, api.store.site)
        assert not problems
        for _ in range(0, EVENTS, BATCH):
            rows = [NewRecord(data, EVERYBODY) for _ in range(BATCH)]
            await api.store.creator.create_many(EVENT, rows)

    async def perform(self, api: Api) -> None:
        await succeeds(api, "PATCH", f"/venues/{self.id}", {"venue": self.name("Hall")})

    async def is_done(self, api: Api) -> bool:
        name = (await succeeds(api, "GET", f"/venues/{self.id}"))["venue"]
        assert (await succeeds(api, "GET", f"/events?venue={self.id}"))["total"] == EVENTS
        # A restarted service waits for abandoned jobs only a little; the rest runs in the background.
        await until(lambda: is_quiet(api.store))
        stored = await api.store.database["events"].distinct("venue.venue")
        assert stored == [name]
        return bool(name == self.name("Hall"))


async def test_a_venue_of_many_events(driver: Driver) -> None:
    """By default the process dies near the first slice of events, and near some other one."""
    operation = VenueName()
    if driver.is_complete:
        await driver.die_everywhere(operation)
    else:
        slices = random.randint(1, EVENTS // EVENTS_PER_COMMAND - 1)
        for number in (FIRST_SLICE, FIRST_SLICE + slices):
            await driver.die(operation, [Point(AFTER, reads=False, number=number)])
    assert driver.victims.jobs_left
    assert await differences(driver.store) == []
    assert await wrong_in_log(driver.store) == []
