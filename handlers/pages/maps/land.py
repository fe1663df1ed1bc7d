"""The outline of the land on earth, cut to what a map shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from itertools import accumulate
from typing import NamedTuple

import orjson

Point = tuple[float, float]
"""Longitude and latitude in degrees."""
Ring = list[Point]


class Box(NamedTuple):
    """A part of the earth, in degrees."""

    west: float
    south: float
    east: float
    north: float


@cache
def rings() -> list[Ring]:
    """The coasts of continents and islands; the file says where they come from."""
    stored = orjson.loads(files("handlers.pages.maps").joinpath("land.json").read_bytes())["rings"]
    return [
        [(x / 10, y / 10) for x, y in zip(accumulate(ring[::2]), accumulate(ring[1::2]), strict=True)]
        for ring in stored
    ]


def land_within(box: Box) -> Iterator[Ring]:
    """The land inside a box: each ring is cut at the four sides in turn (Sutherland and Hodgman)."""
    for ring in rings():
        for axis, bound, sign in ((0, box.west, 1), (0, box.east, -1), (1, box.south, 1), (1, box.north, -1)):
            ring = _cut(ring, lambda p, a=axis, b=bound, s=sign: s * (p[a] - b))  # type: ignore[misc]  # noqa: PLW2901
        if ring:
            yield ring


def _cut(ring: Ring, inside: Callable[[Point], float]) -> Ring:
    """The part of a ring on the positive side of a line; `inside` is the distance from it."""
    kept: Ring = []
    for before, point in zip([*ring[-1:], *ring[:-1]], ring, strict=True):
        was, now = inside(before), inside(point)
        if (was < 0) != (now < 0):
            share = was / (was - now)
            kept.append(tuple(a + share * (b - a) for a, b in zip(before, point, strict=True)))  # type: ignore[arg-type]
        if now >= 0:
            kept.append(point)
    return kept
