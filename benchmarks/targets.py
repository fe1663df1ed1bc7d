"""Performance targets of Kalends."""

from __future__ import annotations

from typing import Any, NamedTuple

LISTS = ("list", "category", "venue", "window")
ITEMS = ("item", "again")
PEERS = ("eve", "beanie")
SAME = 0.7
"""Minimum share of a list's speed that must remain with fifty times as many events."""


class Target(NamedTuple):
    """Kalends must be at least `least` times as fast as the system `against` on this workload."""

    workload: str
    against: str
    least: float


TARGETS = [
    *(Target(load, peer, 20) for load in LISTS for peer in PEERS),
    *(Target(load, f"{peer}_fast", 10) for load in LISTS for peer in PEERS),
    *(Target(load, "constant", 0.25) for load in LISTS),
    *(Target(load, peer, 2.5) for load in ITEMS for peer in PEERS),
    *(Target(load, "constant", 0.3) for load in ITEMS),
    Target("create", "motor", 0.4),
]


def ratio(measured: dict[str, Any], against: str) -> float | None:
    """Requests per second of Kalends divided by those of another system."""
    ours, other = measured.get("kalends"), measured.get(against)
    return ours["rate"] / other["rate"] if ours and other and other["rate"] else None


def judged(workloads: dict[str, Any]) -> list[dict[str, Any]]:
    """Every target whose workload was measured, with the ratio and whether it was met."""
    found = []
    for target in TARGETS:
        if target.workload in workloads:
            reached = ratio(workloads[target.workload]["systems"], target.against)
            if reached is not None:
                found.append({**target._asdict(), "ratio": reached, "passed": reached >= target.least})
    return found
