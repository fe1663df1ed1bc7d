"""The APIs of Eve, and of the services built with FastAPI and Beanie, and with Fastify."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from benchmarks.asks import Ask, BySlug, Create, Item, Listing, Update
from benchmarks.conditions import conditions
from benchmarks.dialects import http
from benchmarks.facts import EARTH_KM, PER_PAGE, Answer, Facts

OWN = ("_id", "date_utc", "modified_utc")
"""Fields that Eve sets itself."""


def rfc1123(moment: datetime) -> str:
    return moment.strftime("%a, %d %b %Y %H:%M:%S GMT")


def new_event(facts: Facts, ask: Create) -> dict[str, Any]:
    """A complete event as stored: the peers do not resolve links."""
    times = {"start": ask.start, "end": ask.end, "start_utc": ask.start, "end_utc": ask.end}
    slug = ask.title.replace(" ", "-")
    return facts.sample | times | {"title": ask.title, "description": ask.description, "slug": slug}


def written(value: Any, time: Any) -> Any:
    """A value with its datetimes formatted as text."""
    if isinstance(value, dict):
        return {key: written(one, time) for key, one in value.items()}
    if isinstance(value, list):
        return [written(one, time) for one in value]
    return time(value) if isinstance(value, datetime) else value


class Eve:
    """Requests to Eve."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def request(self, ask: Ask) -> bytes | None:
        match ask:
            case Listing(place=None):  # Eve cannot find the venues around a place first
                query = {"where": json.dumps(where(ask, self._facts.public)), "sort": "start_utc,_id"}
                return http(
                    "GET", "/events?" + urlencode(query | {"max_results": PER_PAGE, "page": ask.page})
                )
            case Item():
                return http("GET", f"/events/{ask.id}")
            case BySlug():
                return http("GET", f"/events/{ask.slug}")
            case Create():
                event = {
                    name: value for name, value in new_event(self._facts, ask).items() if name not in OWN
                }
                return http("POST", "/bench_eve_new", written(event, rfc1123))
            case Update():
                return http("PATCH", f"/bench_eve_changed/{ask.id}", {"title": ask.title})
            case _:
                return None

    def page(self, body: bytes) -> Answer:
        said = json.loads(body)
        return Answer(len(body), tuple(event["_id"] for event in said["_items"]), said["_meta"].get("total"))


def where(ask: Listing, public: bool) -> dict[str, Any]:
    """The filter as a MongoDB query, which Eve accepts directly."""
    given = parameters(ask, public, rfc1123)
    del given["page"]
    return conditions(**given)


class Beanie:
    """Requests to the service in benchmarks/peers/beanie_app.py."""

    time: Callable[[datetime], str] = staticmethod(datetime.isoformat)

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def request(self, ask: Ask) -> bytes | None:
        match ask:
            case Listing():
                return http("GET", "/events?" + urlencode(parameters(ask, self._facts.public, self.time)))
            case Item():
                return http("GET", f"/events/{ask.id}")
            case BySlug():
                return http("GET", f"/events/{ask.slug}")
            case Create():
                return http("POST", "/new", written(new_event(self._facts, ask), self.time))
            case Update():
                return http("PATCH", f"/changed/{ask.id}", {"title": ask.title})
            case _:
                return None

    def page(self, body: bytes) -> Answer:
        said = json.loads(body)
        return Answer(len(body), tuple(event["_id"] for event in said["events"]), said["total"])


def with_zone(moment: datetime) -> str:
    return f"{moment.isoformat()}Z"


class Fastify(Beanie):
    """Requests to the service in benchmarks/peers/fastify/: the same API, but each time has a zone."""

    time = staticmethod(with_zone)


def parameters(
    ask: Listing, public: bool, time: Callable[[datetime], str] = datetime.isoformat
) -> dict[str, Any]:
    since, until = map(time, ask.bounds)
    found: dict[str, Any] = {"since": since, "until": until, "page": ask.page}
    if public:
        found["status"] = "publish"
    if ask.place:
        lat, lng, km = ask.place
        found |= {"lat": lat, "lng": lng, "angle": km / EARTH_KM}
    named = {"category": ask.category, "venue": ask.venue, "tag": ask.tag, "word": ask.word}
    return found | {name: value for name, value in named.items() if value is not None}
