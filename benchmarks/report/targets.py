"""Performance targets of Kalends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

LISTS = ("list", "category", "venue", "window", "search", "radius")
SAME = {"different": 0.5, "item": 0.5}
"""Workload -> minimum share of its rate that must remain with fifty times as many events."""
Loads = dict[str, Any]


class Number(NamedTuple):
    """One measured number."""

    workload: str
    system: str = "kalends"
    name: str = "rate"

    def of(self, loads: Loads) -> float | None:
        found = loads.get(self.workload, {}).get("systems", {}).get(self.system, {}).get(self.name)
        return float(found) if found else None


class Target(NamedTuple):
    """A number of Kalends, divided by another if there is one, must be `least` at least or `most` at most."""

    title: str
    number: Number
    by: Number | None = None
    least: float | None = None
    most: float | None = None
    unit: str = "×"
    scale: float = 1.0
    """The unit, in terms of that in which the number was measured."""

    def reached(self, loads: Loads) -> float | None:
        number = self.number.of(loads)
        by = self.by.of(loads) if self.by else self.scale
        return number / by if number and by else None


def rate(title: str, workload: str, least: float, *, system: str = "", than: str = "") -> Target:
    """A rate compared with that of another system, or of another workload."""
    by = Number(than or workload, system or "kalends")
    return Target(title, Number(workload), by, least)


def least_rates() -> Iterator[Target]:
    yield rate("Different lists / ready-made bodies", "different", 0.4, system="motor")
    yield rate("Different lists / FastAPI + Beanie", "different", 6, system="beanie")
    yield rate("Different lists / Fastify", "different", 6, system="fastify")
    yield rate("Different lists with 20 changes a second / without", "changing", 0.8, than="different")
    yield rate("Different searches / different lists", "searches", 0.3, than="different")
    yield rate("Different places / different lists", "places", 0.3, than="different")
    for name in LISTS:
        yield rate(f"One address repeated ({name}) / constant bytes", name, 0.5, system="constant")
    yield rate("One event for the first time / constant bytes", "item", 0.3, system="constant")
    yield rate("One event again / constant bytes", "again", 0.6, system="constant")
    yield rate("Default list beside another application / without", "neighbour", 0.5, than="list")
    yield rate("Create, 64 connections / bare insert_one", "create", 0.4, system="motor")
    yield rate("Create, one connection / bare insert_one", "create_one", 0.25, system="motor")
    yield rate("Update / FastAPI + Beanie", "update", 0.8, system="beanie")
    yield rate("Import / create on one connection", "import", 10, than="create_one")
    two = Number("create_two", "kalends2")
    yield Target("Create with two processes / with one", two, Number("create_two"), least=0.9)


def others(loads: Loads) -> Iterator[Target]:
    lists = "different"
    yield Target("MongoDB commands per different list", Number(lists, name="commands"), most=3, unit="")
    p50, p99 = (Number(lists, name=name) for name in ("p50", "p99"))
    yield Target("Different lists: p99 / p50", p99, p50, most=4)
    for name, title in ((lists, "Different lists"), ("start", "Right after a start")):
        yield Target(f"{title}: slowest request", Number(name, name="max"), most=3000, unit=" ms")
    deep, first = (Number(name, name="p50") for name in ("deep", "pages"))
    yield Target("Time of a deep page / of a first page", deep, first, most=3)
    largest = max(loads, key=lambda name: Number(name, name="memory").of(loads) or 0)
    yield Target("Memory of a worker", Number(largest, name="memory"), most=300, unit=" MiB", scale=2**20)


def judged(loads: Loads) -> list[dict[str, Any]]:
    """Every target that was measured, with the number and whether it was met."""
    found = []
    for target in (*least_rates(), *others(loads)):
        reached = target.reached(loads)
        if reached is not None:
            passed = reached >= (target.least or 0) and (target.most is None or reached <= target.most)
            kept = {name: getattr(target, name) for name in ("title", "least", "most", "unit")}
            found.append(kept | {"reached": reached, "passed": passed})
    return found


def ratio(measured: Loads, against: str) -> float | None:
    """Requests per second of Kalends divided by those of another system."""
    ours, other = measured.get("kalends"), measured.get(against)
    return ours["rate"] / other["rate"] if ours and other and other["rate"] else None
