"""Lets an operation die at every point, and checks after each restart that it was done wholly or not."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any, Protocol

from aiohttp import ClientError

from schemas import EVENT, KINDS
from service.store import Store
from tests.checker import differences, until
from tests.conftest import Api
from tests.crashing.dying import AFTER, BEFORE, Point
from tests.crashing.victims import Victim, Victims
from tests.mirror import Mirror

EVERY_POINT = [Point(BEFORE, reads=True), Point(AFTER, reads=True)]
EVERY_STATE = [Point(AFTER, reads=False)]
"""By default a process dies after each write: a read leaves the database as it is, so that a death at any
other point leaves one of the same states."""


class Operation(Protocol):
    """A request that writes several documents."""

    repeats_events: bool
    """Whether events are logged once more, since a category was moved."""

    is_small: bool
    """Whether the whole database can be compared after every death."""

    async def begin(self, api: Api) -> None:
        """Create what the request needs."""

    async def perform(self, api: Api) -> None:
        """Send the request; fail if it does not succeed."""

    async def is_done(self, api: Api) -> bool:
        """Whether the request was done wholly; fail if it was done in part."""


class Driver:
    """Kills services, restarts them, and checks."""

    def __init__(self, victims: Victims) -> None:
        self.victims, self.store = victims, victims.store
        self.mirror = Mirror(limit=50)
        self.is_complete = os.environ.get("CRASH_POINTS") == "all"

    async def die_everywhere(self, operation: Operation) -> None:
        """Die at every point, in a new process each time, and check the restarted service."""
        for points in self.series():
            await self.die(operation, points)

    def series(self, step: int = 1, *, waits: bool = False) -> list[Iterator[Point]]:
        """The points to die at, one after the other: all of them, or by default every few where each takes
        long, beginning at another one in each run."""
        step, kinds = (1, EVERY_POINT) if self.is_complete else (step, EVERY_STATE)
        first = random.randint(1, step)
        return [
            (Point(kind.moment, kind.reads, number, waits) for number in count(first, step)) for kind in kinds
        ]

    async def die(self, operation: Operation, points: Iterable[Point]) -> None:
        """Die at these points, until the operation ends without reaching the next one. A process that dies
        has done nothing else before, so that it always sends the same commands."""
        for point in points:
            async with self.victims.serve() as (victim, api):
                await self.begin(operation, api)
                victim.trigger.arm(point)
                acknowledged = await performed(operation, api)
                if has_died := await self.dies(victim):
                    await self.victims.note_death(victim)
            async with self.victims.serve() as (_, api):
                await self.check(operation, api, acknowledged or not has_died)
            if not has_died:
                return

    async def begin(self, operation: Operation, api: Api) -> None:
        await operation.begin(api)
        if operation.is_small and not self.mirror.token:
            await self.mirror.begin(reading(api))
        await until(lambda: is_quiet(self.store), pause=0.01)

    async def dies(self, victim: Victim) -> bool:
        """Whether the process dies before it has finished everything that the operation causes."""

        async def has_ended() -> bool:
            return victim.has_died or (await is_quiet(self.store) and victim.is_idle)

        await until(has_ended, pause=0.01)
        return victim.has_died

    async def check(self, operation: Operation, api: Api, acknowledged: bool) -> None:
        """After a restart: the database agrees with itself, the operation was done or was not, and can be
        done now; and who follows the changes has learned of all."""
        if operation.is_small:
            await self.check_all(operation, api)
        is_done = await operation.is_done(api)
        assert is_done or not acknowledged, f"acknowledged, but not done; died at {self.victims.last}"
        if not is_done:
            await operation.perform(api)
            await until(lambda: is_quiet(self.store), pause=0.01)
            assert await operation.is_done(api), "done again, but not done"

    async def check_all(self, operation: Operation, api: Api) -> None:
        wrong = await differences(self.store)
        wrong += await wrong_in_log(self.store, repeats_events=operation.repeats_events)
        assert not wrong, (self.victims.last, wrong)
        await self.mirror.follow(reading(api))
        unknown = await self.mirror.differences(reading(api))
        assert not unknown, (self.victims.last, unknown)


async def performed(operation: Operation, api: Api) -> bool:
    """Whether the service has acknowledged the operation before it died."""
    try:
        await operation.perform(api)
    except ClientError:
        return False
    return True


async def is_quiet(store: Store) -> bool:
    """Whether all writes are logged, and no fan-out is left."""
    await store.feed.catch_up()
    store.feed.drop_logged((await store.log.checkpoint()).at)
    return not store.feed.unlogged and not await store.database["fanout_jobs"].find_one({})


async def wrong_in_log(store: Store, *, repeats_events: bool = False) -> list[str]:
    """Records that are not logged once for every version that they have had."""
    counting = {"$group": {"_id": {"kind": "$kind", "id": "$id"}, "rows": {"$sum": 1}}}
    logged = {
        (row["_id"]["kind"], row["_id"]["id"]): row["rows"]
        async for row in store.database["changes"].aggregate([counting])
    }
    return [
        f"{kind.plural} {row['_id']}: version {row['version']}, logged {times} times"
        for kind in KINDS
        async for row in store.database[kind.plural].find({}, {"version": 1})
        if (times := logged.get((kind.plural, row["_id"]), 0)) != row["version"]
        and not (kind is EVENT and repeats_events and times > row["version"])
    ]


def reading(api: Api) -> Any:
    async def get(path: str) -> Any:
        status, body = await api.get(path)
        assert status == 200, body
        return body

    return get
