"""What the limits are asked: to answer as many bytes as Kalends does."""

from __future__ import annotations

from benchmarks.asks import Ask, BySlug, Create, Item, Listing, RenameVenue, Update
from benchmarks.dialects import http
from benchmarks.dialects.kalends import Kalends
from benchmarks.facts import Answer, Facts


class Constant:
    """Asks for so many bytes, with the method and the body that Kalends is asked with."""

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
    """Asks for the events of Kalends' answer by their ids."""

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
