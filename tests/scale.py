"""Many events at once: written past the API, in the shape that the API writes them."""

from __future__ import annotations

import random
from datetime import timedelta
from itertools import accumulate
from typing import Any

from schemas import CATEGORY, EVENT, ORGANIZER, TAG, VENUE, Kind
from schemas.caller import EVERYBODY
from schemas.kind import load
from service.store import Store
from service.store.copies import copy_of
from service.store.indexes import create_indexes

SYLLABLES = [
    "ba",
    "co",
    "di",
    "fu",
    "ga",
    "hel",
    "is",
    "jo",
    "ka",
    "lum",
    "mi",
    "nor",
    "o",
    "pra",
    "qui",
    "ras",
]
CHUNK = 5000


def vocabulary(size: int, chance: random.Random) -> list[str]:
    """Distinct pronounceable words."""
    found: dict[str, None] = {}
    while len(found) < size:
        found["".join(chance.choices(SYLLABLES, k=chance.randint(2, 5)))] = None
    return list(found)


async def linked(store: Store, kind: Kind, number: int) -> list[dict[str, Any]]:
    """Copies of records for events to link to."""
    made = []
    for at in range(number):
        place = (
            {"geo_lat": -80 + at * 160 / number, "geo_lng": -170 + at * 340 / number} if kind is VENUE else {}
        )
        data = load(kind.schema, {kind.title: f"{kind.name} {at}", **place}, store.site)
        made.append(copy_of(kind, await store.create(kind, data, EVERYBODY)))
    return made


async def insert_events(store: Store, number: int, words: int = 100, distinct: int = 20_000) -> None:
    """Events over two years from now; a few words are common, most are rare, as in real texts."""
    chance = random.Random(7)
    terms = vocabulary(distinct, chance)
    weights = list(accumulate(1 / (rank + 2) for rank in range(distinct)))
    numbers: dict[str, int] = {}
    for at in range(0, distinct, CHUNK):
        numbers |= await store.words.numbers(set(terms[at : at + CHUNK]))
    kinds = ((VENUE, 200), (ORGANIZER, 50), (CATEGORY, 20), (TAG, 50))
    links = {kind.name: await linked(store, kind, size) for kind, size in kinds}
    data = load(EVENT.schema, {**EVENT.sample, "venue": None, "categories": None}, store.site)
    template = await store.create(EVENT, data, EVERYBODY)
    begin, first = store.site.now(), template["_id"] + 1
    await store.database["events"].drop_indexes()  # building them afterwards is several times quicker
    await store.database["counters"].update_one({"_id": "post"}, {"$max": {"n": first + number}})
    for chunk in range(0, number, CHUNK):
        rows = []
        for at in range(chunk, min(chunk + CHUNK, number)):
            chosen = chance.choices(terms, cum_weights=weights, k=words)
            start = begin + timedelta(minutes=chance.randrange(700 * 24 * 60))
            end = start + timedelta(hours=chance.randrange(1, 48))
            rows.append(
                template
                | {"_id": first + at, "slug": f"event-{at}", "title": " ".join(chosen[:5])}
                | {"description": " ".join(chosen[5:]), "text": " ".join(chosen)}
                | {"tok": sorted({numbers[word] for word in chosen}), "sort": chosen[0]}
                | {"start": start, "end": end, "start_utc": start, "end_utc": end}
                | {
                    "featured": at % 100 == 0,
                    "ticketed": at % 50 == 0,
                    "post_parent": first if at % 1000 == 1 else 0,
                }
                | {"status": "draft" if at % 20 == 7 else "publish", "author": at % 10}
                | {"venue": [chance.choice(links["venue"])] if at % 10 else []}
                | {"organizer": [chance.choice(links["organizer"])]}
                | {"categories": [chance.choice(links["category"])], "tags": [chance.choice(links["tag"])]}
            )
        await store.database["events"].insert_many(rows, ordered=False)
    await create_indexes(store.database)
