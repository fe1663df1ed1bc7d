"""Lists against plain oracles: time by zoneinfo, search by `in`, places by the haversine formula."""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from schemas import EVENT
from schemas.caller import EVERYBODY, PUBLIC
from schemas.kind import load
from schemas.site import Site
from schemas.values.zones import parse_zone
from service.store import Store

pytestmark = pytest.mark.slow

ZONES = [
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Pacific/Auckland",
    "America/Scoresbysund",
]
SITES = ["UTC", "America/New_York", "Pacific/Auckland", "Asia/Kathmandu", "America/Scoresbysund"]


def examples(number: int) -> settings:
    return settings(
        max_examples=number,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


@asynccontextmanager
async def fresh(store: Store, zone: str = "UTC") -> AsyncIterator[Store]:
    """A store without events, on a site of its own."""
    for name in ("events", "venues", "words"):
        await store.database[name].delete_many({})
    own = Store(store.database, Site(zone=parse_zone(zone), max_per_page=1000))
    try:
        yield own
    finally:
        await own.close()


async def made(store: Store, **body: Any) -> int:
    times = {"start_date": "2027-06-01 10:00", "end_date": "2027-06-01 12:00"}
    record = await store.create(
        EVENT, load(EVENT.body_schema, {"title": "x"} | times | body, store.site), EVERYBODY
    )
    id: int = record["_id"]
    return id


async def listed(store: Store, **query: Any) -> list[int]:
    asked = load(EVENT.query_schema, {"per_page": "1000"} | query, store.site)
    page = await store.page(EVENT, asked, PUBLIC)
    assert page.total == len(page.heads)
    return [record["_id"] for record in page.heads]


# Time

# Days around changes of clocks, and few times of day: gaps, overlaps and equal moments occur often.
DAYS = [
    date(2027, 3, 13),
    date(2027, 3, 14),
    date(2027, 3, 27),
    date(2027, 3, 28),
    date(2027, 4, 3),
    date(2027, 4, 4),
]
TIMES = [time(0), time(1, 30), time(2, 30), time(3), time(10), time(12), time(23, 59, 59)]
moments = some.builds(datetime.combine, some.sampled_from(DAYS), some.sampled_from(TIMES))
lengths = some.sampled_from([0, 1, 2, 10, 24, 48])
events = some.tuples(moments, lengths, some.sampled_from(ZONES), some.booleans())
windows = some.tuples(
    some.dictionaries(
        some.sampled_from(
            ["start_date", "end_date", "starts_after", "starts_before", "ends_after", "ends_before"]
        ),
        some.tuples(moments, some.sampled_from(["day", "wall", "Z", "+05:30", "-0300", "stamp"])),
        min_size=1,
        max_size=3,
    ),
    some.booleans(),
)


def utc(wall: datetime, zone: str) -> datetime:
    return wall.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


def day_of(day: date, zone: str) -> tuple[datetime, datetime]:
    """The first and last second of a day, as instants; in none of these zones is 00:00:00 skipped."""
    last = utc(datetime.combine(day, time(23, 59, 59)), zone)
    next_day = utc(datetime.combine(day + timedelta(days=1), time()), zone)
    return utc(datetime.combine(day, time()), zone), min(last, next_day - timedelta(seconds=1))


def span(wall: datetime, hours: int, zone: str, all_day: bool) -> tuple[datetime, datetime]:
    """Start and end of an event, as instants."""
    end = wall + timedelta(hours=hours)
    if all_day:
        return day_of(wall.date(), zone)[0], day_of(end.date(), zone)[1]
    return utc(wall, zone), utc(end, zone)


Meant = tuple[str, datetime, date]


def spelled(moment: datetime, form: str, site: str) -> Meant:
    """A moment as a client writes it, the instant that it means, and the day."""
    if form == "day":
        return f"{moment:%Y-%m-%d}", utc(datetime.combine(moment.date(), time()), site), moment.date()
    if form == "wall":
        return f"{moment:%Y-%m-%d %H:%M:%S}", utc(moment, site), moment.date()
    if form == "stamp":
        text, instant = str(int(moment.replace(tzinfo=UTC).timestamp())), moment.replace(tzinfo=UTC)
    else:
        offset = "+00:00" if form == "Z" else form
        text = f"{moment:%Y-%m-%dT%H:%M:%S}{form}"
        instant = datetime.fromisoformat(f"{moment:%Y-%m-%dT%H:%M:%S}{offset}")
    return text, instant, instant.astimezone(ZoneInfo(site)).date()


def holds(name: str, meant: Meant, strict: bool, site: str, start: datetime, end: datetime) -> bool:
    """Whether an event passes one date filter, as the rules are written."""
    _, instant, day = meant
    opens, closes = day_of(day, site)
    moment = start if name.startswith("start") else end
    if strict:
        return {
            "start_date": moment >= instant,
            "end_date": moment <= instant,
            "starts_after": moment > instant,
            "ends_after": moment > instant,
            "starts_before": moment < instant,
            "ends_before": moment < instant,
        }[name]
    if name.endswith("_after"):
        return moment > closes
    return moment >= opens if name == "start_date" else moment <= closes


@examples(14)
@given(
    made_events=some.lists(events, min_size=20, max_size=40),
    asked=some.lists(windows, min_size=20, max_size=40),
    site=some.sampled_from(SITES),
)
async def test_lists_equal_the_oracle_in_set_and_order(
    store: Store, made_events: list[Any], asked: list[Any], site: str
) -> None:
    async with fresh(store, site) as store:
        spans: dict[int, tuple[datetime, datetime]] = {}
        for wall, hours, zone, all_day in made_events:
            start, end = span(wall, hours, zone, all_day)
            if end < start:
                continue  # an end that a gap moved behind its start is refused
            dates = {"start_date": str(wall), "end_date": str(wall + timedelta(hours=hours))}
            spans[await made(store, timezone=zone, all_day=all_day, **dates)] = (start, end)
        for filters, strict in asked:
            sent = {name: spelled(moment, form, site) for name, (moment, form) in filters.items()}
            if not set(sent) - {"start_date", "end_date"}:
                sent.setdefault("start_date", spelled(datetime(2027, 1, 1), "day", site))
                sent.setdefault("end_date", spelled(datetime(2028, 1, 1), "day", site))
            expected = [
                id
                for id, (start, end) in sorted(spans.items(), key=lambda pair: (pair[1][0], pair[0]))
                if all(holds(name, meant, strict, site, start, end) for name, meant in sent.items())
            ]
            texts = {name: meant[0] for name, meant in sent.items()}
            assert await listed(store, strict_dates=strict, **texts) == expected, (texts, strict, site)


# Search

WORDS = [
    "Jazz",
    "jazzy",
    "Straße",
    "café",
    "CAFE",
    "C++",
    "naïve",
    "re-entry",
    "2027",
    "50%",
    "ǅ",
    "İstanbul",
    "日本",
]
words = some.one_of(some.sampled_from(WORDS), some.text("abcäÄ-_.é ", min_size=1, max_size=9))
texts = some.lists(words, min_size=1, max_size=6).map(" ".join)
searches = some.one_of(
    texts,
    words,
    some.tuples(some.sampled_from(WORDS), some.integers(0, 3), some.integers(1, 4)).map(
        lambda cut: cut[0][cut[1] : cut[1] + cut[2]]
    ),
    texts.map(lambda text: '"' + text + '"'),
)


def plain(text: str) -> str:
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return " ".join("".join(c for c in folded if not unicodedata.combining(c)).split())


def contains(search: str, fields: list[str]) -> bool:
    pieces = [plain(a or b) for a, b in re.findall(r'"([^"]+)"|(\S+)', search)]
    return all(any(piece in plain(field) for field in fields) for piece in pieces)


@examples(17)
@given(
    stored=some.lists(some.tuples(texts, texts), min_size=5, max_size=15),
    asked=some.lists(searches, min_size=10, max_size=20),
)
async def test_search_finds_what_contains_every_piece(store: Store, stored: Any, asked: list[str]) -> None:
    async with fresh(store) as store:
        kept = {}
        for title, description in stored:
            if title.strip():
                id = await made(
                    store, title=title, description=f"<p class='zzz'>{html.escape(description)}</p>"
                )
                kept[id] = [title.strip(), description]
        for search in asked:
            if not plain(search.replace('"', "")):
                continue  # nothing is asked for
            expected = {id for id, fields in kept.items() if contains(search, fields)}
            assert set(await listed(store, search=search)) == expected, search


# Places

latitudes = some.one_of(some.floats(-90, 90), some.sampled_from([-90.0, 90.0, 89.9999, -89.5, 0.0]))
longitudes = some.one_of(some.floats(-180, 180), some.sampled_from([-180.0, 180.0, 179.9999, -179.99, 0.0]))
points = some.tuples(latitudes, longitudes).map(lambda point: (round(point[0], 6), round(point[1], 6)))


def haversine(a: tuple[float, float], b: tuple[float, float]) -> float:
    (la, oa), (lb, ob) = (tuple(map(math.radians, point)) for point in (a, b))
    chord = math.sin((lb - la) / 2) ** 2 + math.cos(la) * math.cos(lb) * math.sin((ob - oa) / 2) ** 2
    return 2 * 6371.0088 * math.asin(math.sqrt(min(1.0, chord)))


@examples(14)
@given(
    places=some.lists(some.lists(points, min_size=0, max_size=2), min_size=5, max_size=15),
    asked=some.lists(
        some.tuples(points, some.integers(0, 20), some.sampled_from([0.5, 0.9999, 1.0001, 2.0])),
        min_size=5,
        max_size=15,
    ),
)
async def test_radius_is_great_circle_everywhere(store: Store, places: Any, asked: Any) -> None:
    async with fresh(store) as store:
        kept: dict[int, list[tuple[float, float]]] = {}
        for number, venues in enumerate(places):
            data = [
                {"venue": f"V{number}-{at}", "geo_lat": latitude, "geo_lng": longitude}
                for at, (latitude, longitude) in enumerate(venues)
            ]
            kept[await made(store, venue=data)] = venues
        every = [venue for venues in places for venue in venues] or [(0.0, 0.0)]
        for centre, choice, factor in asked:
            # Radii that just reach a place, and just do not.
            radius = round(min(haversine(centre, every[choice % len(every)]) * factor, 20_000) + 0.001, 6)
            near: Callable[[float], set[int]] = lambda km, centre=centre: {  # noqa: E731 - bound to this centre
                id for id, venues in kept.items() if any(haversine(centre, venue) <= km for venue in venues)
            }
            query = {"geoloc_lat": str(centre[0]), "geoloc_lng": str(centre[1]), "geoloc_radius": str(radius)}
            found = set(await listed(store, **query))
            # A hair's breadth on the edge is a matter of rounding.
            assert near(radius * (1 - 1e-9) - 1e-6) <= found <= near(radius * (1 + 1e-9) + 1e-6), query
        assert set(await listed(store, geoloc="true")) == {id for id, venues in kept.items() if venues}
        assert set(await listed(store, geoloc="false")) == {id for id, venues in kept.items() if not venues}
