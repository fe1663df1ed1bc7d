"""Requests to the limits, which respond with as many bytes as Kalends does."""

from __future__ import annotations

import json
from urllib.parse import urlencode

from benchmarks.asks import Ask, BySlug, Create, Item, Listing, RenameVenue, Update
from benchmarks.dialects import http
from benchmarks.dialects.kalends import Kalends
from benchmarks.dialects.peers import parameters
from benchmarks.facts import Answer, Facts


class Constant:
    """Requests the same number of bytes, with the same method and body as for Kalends."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def request(self, ask: Ask) -> bytes:
        path = f"/{self._facts.size(ask)}"
        match ask:
            case Create():
                return http("POST", path, Kalends(self._facts).body(ask))
            case Update():
                return http("PATCH", path, {"title": ask.title})
            case RenameVenue():
                return http("PATCH", path, {"venue": ask.name})
            case _:
                return http("GET", path)

    def page(self, body: bytes) -> Answer:
        return Answer(len(body))


class MotorBytes:
    """Requests ready-made bodies: of a list by its conditions, of one event by ID."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def request(self, ask: Ask) -> bytes | None:
        match ask:
            case Listing(word=None):
                return http("GET", "/listed?" + urlencode(parameters(ask, self._facts.public)))
            case Item() | BySlug():
                return http("GET", f"/item/{ask.id}")
            case Create():
                return http("POST", "/new", Kalends(self._facts).body(ask))
            case Update():
                return http("PATCH", f"/changed/{ask.id}", {"title": ask.title})
            case _:
                return None

    def page(self, body: bytes) -> Answer:
        return Answer(len(body), tuple(event["_id"] for event in json.loads(body)["events"]))
