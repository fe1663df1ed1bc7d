"""Histograms: the totals and places that they give are those of a plain count, in any zone."""

from __future__ import annotations

import random
from collections import Counter
from datetime import date, datetime, time, timedelta
from typing import Any

import pytest

from schemas.values.dates import EPOCH
from schemas.values.zones import MIDNIGHT, Zone, parse_zone
from service.mongo.conditions import COMPARISONS
from service.store import Store
from service.store.lists.histograms import END, FOREVER, NEVER, SHIFT, START, Histogram, Slots, window_of

ZONES = (
    "UTC",
    "Europe/Paris",
    "Asia/Kathmandu",
    "America/St_Johns",
    "Pacific/Apia",
    "Africa/Cairo",
    "UTC-3:30",
)
SECOND = timedelta(seconds=1)
Event = dict[str, Any]


def some_day(chance: random.Random) -> date:
    """Mostly days near changes of clocks, and near the day that Apia skipped."""
    first = chance.choice([date(2011, 12, 20), date(2027, 3, 10), date(2027, 10, 20), date(1969, 12, 20)])
    return first + timedelta(chance.randrange(30))


def edge_of(zone: Zone, day: date, edge: time) -> datetime:
    return zone.to_utc(zone.edge_of_day(day, edge), is_last=edge != MIDNIGHT)


def some_event(chance: random.Random, zone: Zone) -> Event:
    begin = edge_of(zone, some_day(chance), MIDNIGHT)
    start = begin + chance.choice([-SECOND, 0 * SECOND, SECOND, chance.randrange(90_000) * SECOND])
    days = chance.choice([0, 0, 1, 3]) if chance.random() < 0.97 else 4000
    return {START: start, END: start + timedelta(days, chance.choice([0, 3600, 86_399]))}


def some_dates(chance: random.Random, zone: Zone) -> list[dict[str, Any]]:
    """Bounds as lists of days have them."""
    bounds = [(START, "$gte", 0), (START, "$lte", 1), (START, "$gt", 1), (END, "$lte", 1), (END, "$gt", 1)]
    edges = (MIDNIGHT, time(23, 59, 59))
    chosen = chance.sample(bounds, chance.randint(0, 3))
    return [{field: {operator: edge_of(zone, some_day(chance), edges[at])}} for field, operator, at in chosen]


def within(event: Event, dates: list[dict[str, Any]]) -> bool:
    return all(
        COMPARISONS[operator](event[field], bound)
        for condition in dates
        for field, bounds in condition.items()
        for operator, bound in bounds.items()
    )


def histogram_of(slots: Slots, events: list[Event]) -> Histogram:
    starts = [slots.of(event[START]) for event in events]
    spans = [slots.of(event[END]) - start for event, start in zip(events, starts, strict=True)]
    counts = sorted(Counter(start << SHIFT | span for start, span in zip(starts, spans, strict=True)).items())
    return Histogram(slots, [key for key, _ in counts], [number for _, number in counts])


@pytest.mark.parametrize("name", ZONES)
@pytest.mark.parametrize("seed", range(4))
def test_totals_and_places_are_those_of_a_plain_count(name: str, seed: int) -> None:
    chance, zone = random.Random(f"{name} {seed}"), parse_zone(name)
    slots = Slots(zone)
    events = [some_event(chance, zone) for _ in range(60)]
    histogram = histogram_of(slots, events)
    for _ in range(100):
        if chance.random() < 0.5 or not events:
            events.append(some_event(chance, zone))
            histogram.add(events[-1], 1)
        else:
            histogram.add(events.pop(chance.randrange(len(events))), -1)
        dates = some_dates(chance, zone)
        window = window_of(dates, slots)
        assert not window.remainder, dates
        found = [event for event in events if within(event, dates)]
        assert histogram.total(window) == len(found), dates
        for field, is_descending in ((START, False), (START, True), (END, False), (END, True)):
            order = sorted((event[field] for event in found), reverse=is_descending)
            for rank in chance.sample(range(len(order)), min(3, len(order))):
                slot, before = histogram.locate(window, field, rank, is_descending=is_descending)
                assert before <= rank
                begin, end = slots.begin(slot), slots.begin(slot + 1)
                assert begin <= order[rank] < end
                earlier = [at for at in order if (at >= end if is_descending else at < begin)]
                assert len(earlier) == before


@pytest.mark.parametrize("name", ZONES)
def test_a_range_that_cuts_slots_is_their_events_and_those_of_whole_slots(name: str) -> None:
    chance, zone = random.Random(name), parse_zone(name)
    slots = Slots(zone)
    events = [some_event(chance, zone) for _ in range(200)]
    histogram, cuts = histogram_of(slots, events), 0
    for _ in range(300):
        dates = some_dates(chance, zone)
        field, operator = chance.choice([START, END]), chance.choice(sorted(COMPARISONS))
        day = edge_of(zone, some_day(chance), MIDNIGHT)
        dates.append({field: {operator: day + chance.choice([0, 1, chance.randrange(86_400)]) * SECOND}})
        window = window_of(dates, slots)
        found = [event for event in events if within(event, dates)]
        cut = [event for event in found if any(within(event, [one]) for one in window.remainder)]
        assert histogram.total(window) + len(cut) == len(found), dates
        cuts += bool(cut)
    assert cuts > 20
    for bound in (datetime.min, datetime.max.replace(microsecond=0)):
        for operator in COMPARISONS:
            window = window_of([{END: {operator: bound}}], slots)
            assert histogram.total(window) in (0, len(events)), (operator, bound)


@pytest.mark.parametrize("name", ZONES)
def test_slots_follow_each_other_without_gaps(name: str) -> None:
    slots = Slots(parse_zone(name))
    for slot in range(-1000, 40_000, 7):
        begin = slots.begin(slot)
        assert slots.of(begin) == slot
        assert slots.of(begin - SECOND) == slot - 1
        assert slots.is_edge(begin)
    for last in (datetime.min, datetime.max):
        assert NEVER < slots.of(last) < FOREVER
        assert slots.begin(slots.of(last)) <= last <= slots.begin(slots.of(last) + 1)


@pytest.mark.parametrize("name", ZONES)
async def test_the_database_computes_the_same_keys(store: Store, name: str) -> None:
    chance, zone = random.Random(name), parse_zone(name)
    slots = Slots(zone)
    events = [some_event(chance, zone) for _ in range(300)]
    events += [
        {START: datetime(1, 1, 1), END: datetime(9999, 12, 31, 23, 59, 59)},
        {START: EPOCH - SECOND, END: EPOCH},
        {START: datetime(1900, 2, 28, 23, 59, 59), END: datetime(1900, 3, 1)},
    ]
    await store.database["slots"].insert_many({"_id": at, **event} for at, event in enumerate(events))
    shown = [{"$project": {"key": slots.key_expression()}}, {"$sort": {"_id": 1}}]
    rows = await store.database["slots"].aggregate(shown).to_list(None)
    for event, row in zip(events, rows, strict=True):
        start = slots.of(event[START])
        assert row["key"] == start << SHIFT | slots.of(event[END]) - start, event
