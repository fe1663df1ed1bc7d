"""Inserts many events directly into MongoDB, in the form in which the API stores them.

Fields that only the writing process of the API needs are left out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import accumulate, islice
from typing import Any

from benchmarks.facts import DISTINCT, SEED
from benchmarks.words import vocabulary
from schemas import CATEGORY, EVENT, ORGANIZER, TAG, VENUE, Kind
from schemas.caller import EVERYBODY
from schemas.kind import load
from schemas.kinds.event_representation import LINKED, copy_of
from service.mongo.indexes import create_indexes
from service.store import Store

CHUNK = 5000
POPULAR = 1000
"""Number of events at the last venue, whatever the total."""
SIZES = ((VENUE, 200), (ORGANIZER, 50), (CATEGORY, 20), (TAG, 50))
Row = dict[str, Any]
Counts = dict[tuple[str, int], Row]


async def linked(store: Store, kind: Kind, number: int) -> list[Row]:
    """Creates records for events to link to, and returns copies of them."""
    made = []
    for at in range(number):
        place = (
            {"geo_lat": -80 + at * 160 / number, "geo_lng": -170 + at * 340 / number} if kind is VENUE else {}
        )
        data = load(kind.body_schema, {kind.name_field: f"{kind.name} {at}", **place}, store.site)
        made.append(copy_of(kind, await store.create(kind, data, EVERYBODY)))
    return made


async def insert_events(
    store: Store,
    number: int,
    words: int = 100,
    distinct: int = DISTINCT,
    progress: Callable[[int], None] = lambda inserted: None,
) -> int:
    """Inserts events over two years from now. Returns the ID of the first; the others follow in sequence."""
    chance = random.Random(SEED)
    terms = vocabulary(distinct, chance)
    numbers: dict[str, int] = {}
    for at in range(0, distinct, CHUNK):
        numbers |= await store.vocabulary.word_ids(set(terms[at : at + CHUNK]))
    numbers = {word: numbers[word] for word in terms}
    links = {kind.name: await linked(store, kind, size) for kind, size in SIZES}
    sample = {**EVENT.example, "timezone": "UTC", **dict.fromkeys(LINKED)}
    data = load(EVENT.body_schema, sample, store.site)
    template = await store.create(EVENT, data, EVERYBODY)
    first = template["_id"] + 1
    await store.database["counters"].update_one({"_id": "post"}, {"$max": {"n": first + number}})
    rows = generated(template, number, words, numbers, links, store.site.now(), chance)
    await _insert(store, rows, number, progress)
    return int(first)


async def _insert(store: Store, rows: Iterator[Row], number: int, progress: Callable[[int], None]) -> None:
    counts: Counts = {}
    events = store.database["events"]
    await events.drop_indexes()  # building them afterwards is several times faster
    for start in range(0, number, CHUNK):
        chunk = list(islice(rows, CHUNK))
        await events.insert_many(chunk, ordered=False)
        for row in chunk:
            count(counts, row)
        progress(start + len(chunk))
    await store.log.update()  # what it has counted until now is replaced
    await note_counts(store, counts)
    await create_indexes(store.database)


def generated(
    template: Row,
    number: int,
    words: int,
    numbers: dict[str, int],
    links: dict[str, list[Row]],
    begin: datetime,
    chance: random.Random,
) -> Iterator[Row]:
    """Generates the events. A few words are common and most are rare, as in real text."""
    terms = list(numbers)
    weights = list(accumulate(1 / (rank + 2) for rank in range(len(terms))))
    *venues, popular = links["venue"]
    stride = max(1, number // POPULAR)
    for at in range(number):
        chosen = chance.choices(terms, cum_weights=weights, k=words)
        start = begin + timedelta(minutes=chance.randrange(700 * 24 * 60))
        end = start + timedelta(hours=chance.randrange(1, 48))
        title, description = " ".join(chosen[:5]), " ".join(chosen[5:])
        is_popular = at % stride == stride // 2 and at // stride < POPULAR
        yield (
            template
            | {"_id": template["_id"] + 1 + at, "slug": f"event-{at}", "title": title}
            | {"description": description, "text": f"{title}\n{description}", "sort": title[:100]}
            | {"tok": sorted({numbers[word] for word in chosen})}
            | {"start": start, "end": end, "start_utc": start, "end_utc": end}
            | {"featured": at % 100 == 0, "ticketed": at % 50 == 0}
            | {"post_parent": template["_id"] + 1 if at % 1000 == 1 else 0}
            | {"status": "draft" if at % 20 == 7 else "publish", "author": at % 10}
            | {"venue": [popular if is_popular else chance.choice(venues)] if at % 10 or is_popular else []}
            | {"organizer": [chance.choice(links["organizer"])]}
            | {"categories": [chance.choice(links["category"])], "tags": [chance.choice(links["tag"])]}
        )


def count(counts: Counts, event: Row) -> None:
    """Adds an event to the usage counts of all records that it links to."""
    is_public, end = event["status"] == "publish", event["end_utc"]
    for field, kind in LINKED.items():
        for copy in event[field]:
            kept = counts.setdefault((field, copy["_id"]), {"publish": 0})
            kept["publish"] += is_public
            if kind.is_post:
                for name in ("publish_end", "live_end") if is_public else ("live_end",):
                    kept[name] = max(end, kept.get(name, end))


async def note_counts(store: Store, counts: Counts) -> None:
    for (field, id), kept in counts.items():
        values = {f"events.{name}": value for name, value in kept.items()}
        await store.database[LINKED[field].plural].update_one({"_id": id}, {"$set": values})
