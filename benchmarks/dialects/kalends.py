"""The API of Kalends."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

from benchmarks.asks import Ask, BySlug, Create, Item, Listing, Move, RenameVenue, Update
from benchmarks.dialects import http
from benchmarks.facts import Answer, Facts

ROOT = "/calendar/events/v1"


class Kalends:
    """Requests to Kalends."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._token = facts.token if facts.public else ""

    def request(self, ask: Ask) -> bytes:
        match ask:
            case Listing():
                query = urlencode(parameters(ask))
                return http("GET", f"{ROOT}/events{query and '?'}{query}")
            case Item():
                return http("GET", f"{ROOT}/events/{ask.id}")
            case BySlug():
                return http("GET", f"{ROOT}/events/by-slug/{ask.slug}")
            case Create():
                return http("POST", f"{ROOT}/events", self.body(ask), self._token)
            case Update():
                return http("PATCH", f"{ROOT}/events/{ask.id}", {"title": ask.title}, self._token)
            case Move():
                return http(
                    "PATCH", f"{ROOT}/events/{ask.id}", {"title": ask.title} | times(ask), self._token
                )
            case RenameVenue():
                return http("PATCH", f"{ROOT}/venues/{ask.id}", {"venue": ask.name}, self._token)

    def body(self, ask: Create) -> dict[str, Any]:
        return {
            "title": ask.title,
            "description": ask.description,
            **times(ask),
            "timezone": "UTC",
            "cost": "€15",
            "categories": [self._facts.category],
            "tags": [self._facts.tag],
            "venue": self._facts.venue,
            "organizer": [self._facts.organizer],
        }

    def page(self, body: bytes) -> Answer:
        said = json.loads(body)
        return Answer(len(body), tuple(event["id"] for event in said["events"]), said["total"])


def times(ask: Create | Move) -> dict[str, str]:
    return {"start_date": ask.start.isoformat(" ", "seconds"), "end_date": ask.end.isoformat(" ", "seconds")}


def parameters(ask: Listing) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if ask.first:
        found["start_date"] = ask.since.isoformat()
    if ask.last:
        found["end_date"] = ask.until.isoformat()
    if ask.place:
        names = ("geoloc_lat", "geoloc_lng", "geoloc_radius")
        found |= dict(zip(names, ask.place, strict=True))
    named = {"categories": ask.category, "venue": ask.venue, "tags": ask.tag, "search": ask.word}
    found |= {name: value for name, value in named.items() if value is not None}
    return found | ({"page": ask.page} if ask.page > 1 else {})
