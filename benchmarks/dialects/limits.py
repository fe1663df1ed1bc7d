"""Requests to the limits, which respond with as many bytes as Kalends does."""

from __future__ import annotations

from benchmarks.asks import Ask, BySlug, Create, Item, Listing, RenameVenue, Update
from benchmarks.dialects import http
from benchmarks.dialects.kalends import Kalends
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
    """Requests the events in Kalends' response by ID."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def request(self, ask: Ask) -> bytes | None:
        match ask:
            case Listing():
                ids = ",".join(map(str, self._facts.listed[ask].ids))
                return http("GET", f"/bench_motor_listed?ids={ids}")
            case Item() | BySlug():
                return http("GET", f"/bench_motor_item?ids={ask.id}")
            case Create():
                return http("POST", "/new", Kalends(self._facts).body(ask))
            case Update():
                return http("PATCH", f"/changed/{ask.id}", {"title": ask.title})
            case RenameVenue():
                return None

    def page(self, body: bytes) -> Answer:
        return Answer(len(body))
