"""Draws places on a map: a simple outline of the land with a grid, as the parts of an SVG image."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, cos, hypot, radians, sqrt
from typing import NamedTuple

from handlers.pages.maps.land import Box, Point, land_within

STEPS = (30.0, 10.0, 5.0, 2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
"""Distances of grid lines in degrees."""
LENGTHS = (5000, 2000, 1000, 500, 200, 100, 50, 20, 10, 5, 2, 1, 0.5, 0.2, 0.1)
"""Lengths of the scale bar in kilometres."""
KM_PER_DEGREE = 111.2
LEAST_OUTLINED = 2.5
"""Height in degrees below which no outline is drawn: it is too coarse, and would put ports into the sea."""
MARGIN = 1.35
MAX_LATITUDE = 80.0
"""The scale is that of the middle of the map; nearer to a pole it would be distorted beyond use."""


class Place(NamedTuple):
    """A place to draw, the number of its events, and the page it leads to."""

    name: str
    latitude: float
    longitude: float
    events: int = 0
    link: str = ""


@dataclass
class Marker:
    """A point of a map: one place, or several that would cover each other."""

    x: float
    y: float
    places: list[Place]

    @property
    def events(self) -> int:
        return sum(place.events for place in self.places)

    @property
    def radius(self) -> float:
        """The area grows with the number of events, up to a limit."""
        return round(min(8 + sqrt(self.events) * 1.6, 22), 1)


class VenueMap:
    """A map of places in a picture of this size. `least` is its minimal height in degrees."""

    def __init__(self, places: Sequence[Place], width: int = 480, height: int = 360, least: float = 0.03):
        self.width, self.height, self.places = width, height, places
        west, east = (find(place.longitude for place in places) for find in (min, max))
        south, north = (find(place.latitude for place in places) for find in (min, max))
        self._middle = ((west + east) / 2, (south + north) / 2)
        self._narrowing = cos(radians(min(abs(self._middle[1]), MAX_LATITUDE)))
        spans = ((east - west) * self._narrowing / width, (north - south) / height)
        self._degrees = max(*(span * MARGIN for span in spans), least / height)
        """Degrees of latitude in a unit of the picture."""

    def at(self, point: Point) -> tuple[float, float]:
        """Where a point is in the picture."""
        x = self.width / 2 + (point[0] - self._middle[0]) * self._narrowing / self._degrees
        return round(x, 1), round(self.height / 2 - (point[1] - self._middle[1]) / self._degrees, 1)

    @property
    def box(self) -> Box:
        wide, high = self.width * self._degrees / self._narrowing / 2, self.height * self._degrees / 2
        return Box(*(m - d for m, d in zip(self._middle, (wide, high), strict=True)),
                   *(m + d for m, d in zip(self._middle, (wide, high), strict=True)))  # fmt: skip

    @property
    def land(self) -> str:
        """The outline of the land, as the data of a path; empty if the map is of a small area."""
        if self.height * self._degrees < LEAST_OUTLINED:
            return ""
        rings = ([self.at(point) for point in ring] for ring in land_within(self.box))
        return "".join(f"M{'L'.join(f'{x:g} {y:g}' for x, y in ring)}Z" for ring in rings)

    @property
    def grid(self) -> str:
        """Meridians and parallels, as the data of a path."""
        box = self.box
        step = next((one for one in reversed(STEPS) if (box.north - box.south) / one <= 5), STEPS[0])
        across = (self.at((n * step, 0))[0] for n in _multiples(box.west, box.east, step))
        down = (self.at((0, n * step))[1] for n in _multiples(box.south, box.north, step))
        return "".join(
            [*(f"M{x:g} 0V{self.height}" for x in across), *(f"M0 {y:g}H{self.width}" for y in down)]
        )

    @property
    def scale(self) -> tuple[float, float]:
        """The scale bar: its length in the picture, and in kilometres."""
        kilometres = self._degrees * KM_PER_DEGREE
        length = next((one for one in LENGTHS if one / kilometres <= self.width / 4), LENGTHS[-1])
        return round(length / kilometres, 1), length

    @property
    def markers(self) -> list[Marker]:
        """The places; one that would cover another one is added to its marker."""
        found: list[Marker] = []
        for place in self.places:
            x, y = self.at((place.longitude, place.latitude))
            near = (one for one in found if hypot(one.x - x, one.y - y) < one.radius + 8)
            if marker := next(near, None):
                marker.places.append(place)
            else:
                found.append(Marker(x, y, [place]))
        return found


def _multiples(low: float, high: float, step: float) -> Iterable[int]:
    return range(ceil(low / step), ceil(high / step))
