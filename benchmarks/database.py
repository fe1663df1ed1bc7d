"""The shared database: an embedded mongod with the events, which runs until stdin is closed.

Runs with the project's own dependencies. The events are loaded once and reused by later runs. Prints lines of
JSON: the progress of loading, then the connection string and facts about the data.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pymongo

from benchmarks.data import insert_events
from benchmarks.facts import DISTINCT, SEED
from benchmarks.ready import NAME as READY
from benchmarks.ready import STATE as MADE
from benchmarks.words import vocabulary
from schemas.caller import Role
from schemas.kinds.event_representation import LINKED
from schemas.site import Site
from service.embedded import embedded_mongod
from service.mongo.indexes import INDEX_BUILD_SECONDS
from service.store import Store, open_store

NAME = "kalends"
TOKEN = "benchmark"
OURS = ("aiohttp", "motor", "pymongo", "orjson")
COUNTS = ("publish", "publish_end", "live_end")
RANK = 2000
"""Frequency rank of the word to search for: about one event in two hundred contains it."""


def say(**line: Any) -> None:
    print(json.dumps(line), flush=True)


async def load_once(store: Store, number: int) -> None:
    """Loads the events unless an earlier run did; an incomplete load is started over."""
    made = store.database[MADE]
    if await made.find_one({"_id": number}):
        return
    await store.client.drop_database(NAME)
    await store.start()
    first = await insert_events(store, number, progress=lambda done: say(loaded=done))
    counts = [
        {"_id": f"{field}:{row['_id']}", "events": row["events"]}
        for field, kind in LINKED.items()
        async for row in store.database[kind.plural].find({}, {"events": 1})
    ]
    await made.insert_many([*counts, {"_id": number, "first": first, "facts": await facts(store, first)}])


async def facts(store: Store, first: int) -> dict[str, Any]:
    """The IDs and words that workloads use."""

    async def id_of(plural: str, title: str, name: str) -> int:
        found = await store.database[plural].find_one({title: name}, {"_id": 1})
        assert found
        return int(found["_id"])

    async def ids_of(plural: str) -> list[int]:
        return [int(row["_id"]) async for row in store.database[plural].find({}, {"_id": 1}).sort("_id")]

    words = vocabulary(DISTINCT, random.Random(SEED))
    return {
        "first": first,
        "word": next(word for word in words[RANK:] if len(word) >= 10),
        "words": words[:2000],
        "category": await id_of("categories", "name", "category 3"),
        "tag": await id_of("tags", "name", "tag 3"),
        "organizer": await id_of("organizers", "organizer", "organizer 3"),
        "venue": await id_of("venues", "venue", "venue 100"),
        "popular": await id_of("venues", "venue", "venue 199"),
        **{plural: await ids_of(plural) for plural in ("categories", "venues", "tags")},
    }


async def tidy(store: Store, number: int) -> dict[str, Any]:
    """Deletes what write workloads have created and restores the usage counts. Returns the facts."""
    made = store.database[MADE]
    loaded = await made.find_one({"_id": number})
    assert loaded
    with pymongo.timeout(INDEX_BUILD_SECONDS):  # removes thousands of events from two dozen indexes
        await store.database["events"].delete_many({"_id": {"$gte": loaded["first"] + number}})
    async for row in made.find({"events": {"$exists": True}}):
        field, _, id = row["_id"].partition(":")
        counts = {f"events.{name}": row["events"][name] for name in COUNTS if name in row["events"]}
        await store.database[LINKED[field].plural].update_one({"_id": int(id)}, {"$set": counts})
    await store.database["tokens"].delete_many({"name": TOKEN})
    for name in await store.database.list_collection_names(filter={"name": {"$regex": "^bench_"}}):
        if name not in (MADE, READY):
            await store.database.drop_collection(name)
    facts: dict[str, Any] = loaded["facts"]
    return facts


async def main(directory: Path, number: int) -> None:
    async with embedded_mongod(directory) as uri, open_store(uri, NAME, Site()) as store:
        await load_once(store, number)
        known = await tidy(store, number)
        token = await store.tokens.create(TOKEN, Role.ADMIN)
        versions = {name: version(name) for name in OURS}
        say(uri=uri, database=NAME, facts=known | {"token": token, "versions": versions})
        await asyncio.to_thread(sys.stdin.read)
        await tidy(store, number)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
