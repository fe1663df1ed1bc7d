"""Fifty thousand events: what a list reads stays small, and so do the indexes."""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from benchmarks.data import insert_events
from benchmarks.words import vocabulary
from schemas import EVENT
from schemas.caller import PUBLIC
from schemas.site import Site
from service.store import Store, open_store
from tests.test_indexes import explained, plans, stages, work

pytestmark = pytest.mark.slow

EVENTS = 50_000


@pytest.fixture
async def large(mongodb_uri: str, worker_id: str) -> AsyncIterator[Store]:
    """A store that is full."""
    async with open_store(mongodb_uri, f"scale_{worker_id}", Site()) as store:
        await insert_events(store, EVENTS)
        yield store


async def linked(store: Store, plural: str) -> int:
    found = await store.database[plural].find_one({}, {"_id": 1})
    assert found
    return int(found["_id"])


async def every_filter_reads_little_more_than_it_answers(large: Store) -> None:
    parent = await large.database["events"].find_one({"post_parent": {"$gt": 0}})
    assert parent
    cases: list[dict[str, Any]] = [
        {},
        {"venue": str(await linked(large, "venues"))},
        {"organizer": str(await linked(large, "organizers"))},
        {"categories": "category 3"},
        {"tags": "tag 3"},
        {"featured": "1"},
        {"ticketed": "1"},
        {"post_parent": str(parent["post_parent"])},
        {"include": f"{parent['_id']}"},
        {"start_date": "today +30 days", "end_date": "today +31 days"},
        {"starts_after": "today +300 days"},
        {"starts_before": "today +3 days"},
        {"ends_after": "today +300 days"},
        {"ends_before": "today +3 days"},
        {"geoloc": "true"},
        {"orderby": "title"},
        {"orderby": "date"},
        {"orderby": "modified", "order": "desc"},
        {"orderby": "end_date", "starts_after": "today"},
        {"orderby": "id", "order": "desc"},
    ]
    for values in cases:
        said = await explained(large, EVENT, values, PUBLIC)
        assert not any("COLLSCAN" in stages(plan) for plan in plans(said["page"])), values
        read, answered = work(said["page"])
        assert read <= 3 * answered + 50, (values, read, answered)


async def totals_are_counted_from_an_index(large: Store) -> None:
    linked_to = {"venue": str(await linked(large, "venues"))}
    linked_to["organizer"] = str(await linked(large, "organizers"))
    for values in (
        {},
        {"categories": "category 3"},
        {"tags": "tag 3"},
        *({n: v} for n, v in linked_to.items()),
    ):
        said = await explained(large, EVENT, values, PUBLIC)
        assert work(said["total"])[0] == 0, values


async def place_filter_reads_a_small_part(large: Store) -> None:
    values = {"geoloc_lat": "0", "geoloc_lng": "0", "geoloc_radius": "150"}
    for command, said in (await explained(large, EVENT, values, PUBLIC)).items():
        assert work(said)[0] < EVENTS * 0.02, command


async def rare_part_of_a_word_is_found_by_reading_less_than_two_percent(large: Store) -> None:
    rarest = vocabulary(20_000, random.Random(7))[-1]
    part = rarest[1:-1]
    expected = await large.database["events"].count_documents(
        {"status": "publish", "text": {"$regex": re.escape(part)}}
    )
    assert 0 < expected < EVENTS * 0.01
    for command, said in (await explained(large, EVENT, {"search": part}, PUBLIC)).items():
        assert work(said)[0] < EVENTS * 0.02, (part, command)
    query = {"page": 1, "per_page": 12, "search": part, "starts_after": None}
    page = await large.page(EVENT, query, PUBLIC)
    assert page.total == expected


async def indexes_stay_smaller_than_the_data(large: Store) -> None:
    events = await large.database.command("collStats", "events")
    words = await large.database.command("collStats", "words")
    search = events["indexSizes"]["words"] + words["size"] + words["totalIndexSize"]
    assert search < 0.3 * events["size"]
    assert events["totalIndexSize"] + words["totalIndexSize"] < 0.5 * events["size"]


async def test_fifty_thousand_events(large: Store) -> None:
    """One test, since it takes half a minute to make them."""
    await every_filter_reads_little_more_than_it_answers(large)
    await totals_are_counted_from_an_index(large)
    await place_filter_reads_a_small_part(large)
    await rare_part_of_a_word_is_found_by_reading_less_than_two_percent(large)
    await indexes_stay_smaller_than_the_data(large)
