"""Demo data: a season of events to try the service with."""

from __future__ import annotations

import sys
from datetime import timedelta

from schemas import EVENT
from schemas.caller import EVERYBODY
from schemas.dates import show
from schemas.kind import load
from schemas.site import Site
from service.database import Location
from service.store import Store, open_store

VENUES = [
    {"venue": "Grand Hall", "address": "1 Market Square", "city": "Freiburg", "country": "Germany",
     "zip": "79098", "geo_lat": 47.9959, "geo_lng": 7.8522},
    {"venue": "Riverside Stage", "address": "Quai des Arts", "city": "Strasbourg", "country": "France",
     "zip": "67000", "geo_lat": 48.5734, "geo_lng": 7.7521},
    {"venue": "Botanic Garden", "address": "Schänzlestrasse 1", "city": "Freiburg", "country": "Germany",
     "geo_lat": 48.0061, "geo_lng": 7.8623},
    {"venue": "University Library", "address": "Platz der Universität 2", "city": "Freiburg",
     "country": "Germany", "geo_lat": 47.9941, "geo_lng": 7.8457},
]  # fmt: skip
ORGANIZERS = [
    {
        "organizer": "City Arts Council",
        "email": "arts@city.example.org",
        "website": "https://arts.example.org",
    },
    {"organizer": "Chess Club 1887", "phone": "+49 761 5550"},
    {"organizer": "Friends of the Library", "email": "friends@library.example.org"},
]
# (title, days between repetitions, times, starting hour, hours, cost, categories, tags, venue, organizer)
# The examples of the API documentation refer to the first event, its venue and its organizer.
SEASON = [
    ("Summer Concert", 28, 4, 20, 2, "€18 – €32", ["Concerts"], ["outdoor"], 0, 0),
    ("Farmers’ Market", 7, 12, 8, 5, "Free", ["Markets"], ["family", "outdoor"], 0, 0),
    ("Chess Evening", 7, 12, 19, 3, "5 €", ["Clubs"], ["games"], 3, 1),
    ("Open-Air Jazz", 14, 6, 19, 3, "€15", ["Concerts"], ["jazz", "outdoor"], 1, 0),
    ("Guided Garden Walk", 14, 8, 14, 2, "8 €", ["Tours"], ["family", "outdoor"], 2, 2),
    ("Reading: New Voices", 21, 5, 18, 2, "", ["Literature"], ["books"], 3, 2),
    ("Poetry Slam", 30, 4, 20, 3, "10 €", ["Literature"], ["books", "young"], 1, 2),
    ("Python User Group", 30, 4, 19, 2, "Free", ["Clubs"], ["technology"], 3, 1),
]


async def fill_demo(location: Location, site: Site) -> None:
    """Fill the database if it has no events, and print the result."""
    async with open_store(location.uri, location.database, site) as store:
        created = await fill(store)
    message = (
        f"{created} events created in {location}" if created else f"There are events already in {location}"
    )
    print(message if created else f"{message}; nothing was changed", file=sys.stderr)


async def fill(store: Store) -> int:
    """Fill the database unless it has events; return the number of events created."""
    if await store.database["events"].find_one({}, {"_id": 1}):
        return 0
    created = 0
    for at, (title, every, times, hour, hours, cost, categories, tags, venue, organizer) in enumerate(SEASON):
        first = store.site.now().replace(hour=hour, minute=0, second=0) + timedelta(days=2 + at)
        for number in range(times):
            start = first + timedelta(days=every * number)
            event = {
                "title": title,
                "start_date": show(start),
                "end_date": show(start + timedelta(hours=hours)),
                "timezone": "Europe/Berlin",
                "description": f"<p>{title}: number {number + 1} of {times} this season.</p>",
                "cost": cost,
                "categories": categories,
                "tags": tags,
                "venue": VENUES[venue],
                "organizer": [ORGANIZERS[organizer]],
                "featured": number == 0,
            }
            await store.create(EVENT, load(EVENT.body_schema, event, store.site), EVERYBODY)
            created += 1
    return created
