"""The view of the calendar that shows where events are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from handlers.pages.calendar.event_times import ShownEvent
from handlers.pages.calendar.events import MAX_IN_GRID, EventFinder
from handlers.pages.context import PageContext
from handlers.pages.maps import Place, VenueMap
from schemas.kind import Document

MAX_PLACES = 100
"""Venues on a map: those with the most events."""


async def map_values(finder: EventFinder, page: PageContext, day: date) -> Document:
    """The venues with coordinates of the next events; a bounded number of events is looked at."""
    found = await finder.from_day(page, day, 1, MAX_IN_GRID)
    places = places_of(found.events, page)
    drawn = VenueMap(places) if places else None
    return {"events": found.events, "total": found.total, "map": drawn}


def places_of(events: Iterable[ShownEvent], page: PageContext) -> list[Place]:
    """The places of events, those with the most events first."""
    venues: dict[int, Mapping[str, Any]] = {}
    counted: Counter[int] = Counter()
    for event in events:
        for venue in event.places:
            if venue["geo_lat"] is not None and venue["show_map"]:
                venues[venue["id"]] = venue
                counted[venue["id"]] += 1
    return [_place(venues[id], number, page) for id, number in counted.most_common(MAX_PLACES)]


def _place(venue: Mapping[str, Any], events: int, page: PageContext) -> Place:
    name = ", ".join(text for text in (venue["venue"], venue["city"]) if text)
    return Place(name, venue["geo_lat"], venue["geo_lng"], events, page.record_link(venue["url"]))
