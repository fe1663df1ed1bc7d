"""A service dies at every point of the upgrade of a database of version 0.1.0; the next one completes it."""

from __future__ import annotations

from collections import defaultdict

import pytest
from bson import json_util

from service.migrations import FORM, stored_form
from service.store import Store
from tests.checker import differences
from tests.crashing.driver import Driver
from tests.test_migrations import OLD

pytestmark = pytest.mark.slow

OBSOLETE = {"debts", "importers", "imports", "chores"}


async def make_old(store: Store) -> None:
    """The database as version 0.1.0 has left it."""
    await store.client.drop_database(store.database.name)
    rows = defaultdict(list)
    for line in OLD.read_text().splitlines():
        row = json_util.loads(line)
        rows[row["collection"]].append(row["document"])
    for name, documents in rows.items():
        await store.database[name].insert_many(documents)


async def test_migration(driver: Driver) -> None:
    store, upgraded = driver.store, None
    for points in driver.series(step=5):
        for point in points:
            await make_old(store)
            async with driver.victims.start("migrate", point=point) as victim:
                await victim.ends()
                if has_died := victim.has_died:
                    await driver.victims.note_death(victim)
            async with driver.victims.serve() as (_, api):
                assert await stored_form(store.database) == FORM
                await store.feed.close()
                assert await differences(store) == []
                assert OBSOLETE.isdisjoint(await store.database.list_collection_names())
                status, page = await api.get("/events?start_date=2026-01-01&per_page=50")
                shown = [(event["id"], event["title"], event["venue"]) for event in page["events"]]
                upgraded = upgraded or shown
                assert (status, shown, len(shown)) == (200, upgraded, 26)
            if not has_died:
                break
    steps = {
        "update events",
        "update fanout_jobs",
        "drop debts",
        "drop imports",
        "drop chores",
        "update meta",
    }
    assert driver.victims.seen.total() >= 6
    assert driver.victims.seen.keys() >= steps or not driver.is_complete
