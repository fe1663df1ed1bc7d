"""Fills a database with the season."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime, timedelta

from schemas import EVENT
from schemas.caller import EVERYBODY
from schemas.kind import Document, load
from schemas.site import Site
from schemas.values.dates import show
from service.database import Location
from service.demo.season import ORGANIZERS, SEASON, VENUES, Series
from service.store import Store, open_store

WEEKS_BEFORE = 6
"""How many weeks before the current one the season begins."""


async def fill_demo(location: Location, site: Site) -> None:
    """Fill the database if it has no events, and print the result."""
    async with open_store(location.uri, location.database, site) as store:
        created = await fill(store)
    message = (
        f"{created} events created in {location}" if created else f"There are already events in {location}"
    )
    print(message if created else f"{message}; nothing was changed", file=sys.stderr)


async def fill(store: Store) -> int:
    """Fill the database unless it has events; return the number of events created."""
    if await store.database["events"].find_one({}, {"_id": 1}):
        return 0
    today = store.site.now().replace(hour=0, minute=0, second=0)
    monday = today - timedelta(days=today.weekday(), weeks=WEEKS_BEFORE)
    events = [event for series in SEASON for event in events_of(series, monday, store.site)]
    for event in events:
        await store.create(EVENT, load(EVENT.body_schema, event, store.site), EVERYBODY)
    return len(events)


def events_of(series: Series, monday: datetime, site: Site) -> Iterator[Document]:
    """The events of a series, in a season that begins on a Monday."""
    for number in range(series.times):
        weeks = series.begins + number * series.every
        start = monday + timedelta(weeks=weeks, days=series.weekday, hours=series.hour)
        yield {
            "title": series.title,
            "description": series.text,
            "start_date": show(start),
            "end_date": show(start + timedelta(hours=series.hours)),
            "timezone": series.zone,
            "all_day": series.all_day,
            "cost": series.cost,
            "image": f"{site.base_url}/assets/demo-{series.picture}.svg",
            "categories": list(series.categories),
            "tags": list(series.tags),
            "venue": VENUES[series.venue],
            "organizer": [ORGANIZERS[series.organizer]],
            "featured": series.featured,
        }
