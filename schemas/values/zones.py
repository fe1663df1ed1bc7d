"""Time zones: IANA names and fixed offsets, and conversion between wall-clock time and UTC."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from functools import cache, lru_cache
from importlib.resources import files
from zoneinfo import ZoneInfo

from schemas.language import Text

OFFSET = re.compile(
    r"(?P<utc>UTC)?(?P<sign>[+-])(?P<hours>\d{1,2})(?:(?::|(?<=\d\d))(?P<minutes>[0-5]\d)|\.(?P<part>\d{1,2}))?",
    re.ASCII | re.IGNORECASE,
)
MIN_OFFSET, MAX_OFFSET = timedelta(hours=-12), timedelta(hours=14)
MIDNIGHT = time(0, 0, 0)


@dataclass(frozen=True)
class Zone:
    """A time zone with the name it is stored and shown under; all datetimes passed in and out are naive."""

    name: str
    info: tzinfo

    def to_utc(self, wall: datetime, *, is_last: bool = False) -> datetime:
        """The instant of a wall-clock time; in a DST overlap the first one, or the last if `is_last`."""
        # With fold=0 a time inside a gap uses the offset before it, which moves it forward by the gap.
        return _within_years(lambda: _convert(wall, int(is_last), self.info, UTC))

    def to_wall(self, utc: datetime) -> datetime:
        """The wall-clock time in this zone at the instant."""
        return utc if self.info is UTC else _within_years(lambda: _convert(utc, 0, UTC, self.info))

    def edge_of_day(self, day: date, edge: time) -> datetime:
        """The wall-clock time at which a day begins (00:00:00) or ends (23:59:59). If a gap skips that time,
        the first or last second that exists on the day; if a gap skips the whole day, the next day counts."""
        wall = datetime.combine(day, edge)
        if self.to_wall(self.to_utc(wall)) == wall:
            return wall
        first = _end_of_gap(self, wall)
        shown = self.to_wall(first if edge == MIDNIGHT else first - timedelta(seconds=1))
        return shown if shown.date() == day else self.edge_of_day(day + timedelta(days=1), edge)

    def abbreviation(self, utc: datetime) -> str:
        """The abbreviation in use at the instant, such as EDT; for a fixed offset, the offset itself."""
        if isinstance(self.info, timezone):
            # Clients of the reference service expect GMT+0530 for a zone sent as +05:30.
            return self.name if self.name.startswith("UTC") else f"GMT{utc.replace(tzinfo=self.info):%z}"
        local = _within_years(lambda: utc.replace(tzinfo=UTC).astimezone(self.info))
        return local.tzname() or self.name


@lru_cache(1000)
def parse_zone(text: str) -> Zone:
    """Parses an IANA name, case-insensitive, or an offset such as UTC+2, UTC-5:30, UTC+5.5 or +02:00."""
    if text.upper() in ("UTC", "Z"):
        return Zone("UTC", UTC)
    if offset := OFFSET.fullmatch(text):
        return Zone(text.upper(), timezone(_offset(offset)))
    if name := _names().get(text.lower()):
        return Zone(name, _zone_info(name))
    raise ValueError(
        Text(
            "Unknown time zone. Send an IANA name such as Europe/Paris, or an offset such as UTC+2 or +02:00."
        )
    )


def _offset(match: re.Match[str]) -> timedelta:
    minutes = int(match["minutes"] or 0)
    if match["part"]:
        minutes, rest = divmod(int(match["part"].ljust(2, "0")) * 60, 100)
        if rest:
            raise ValueError(Text("The offset must be in whole minutes, such as UTC+5.5 or UTC+5:45."))
    offset = timedelta(hours=int(match["hours"]), minutes=minutes) * (-1 if match["sign"] == "-" else 1)
    if not MIN_OFFSET <= offset <= MAX_OFFSET:
        raise ValueError(Text("The offset must be between -12:00 and +14:00."))
    return offset


@cache
def zone_names() -> tuple[str, ...]:
    """IANA names that people choose from."""
    return tuple(sorted(name for name in _names().values() if "/" in name and not name.startswith("Etc/")))


# Names and rules come only from the tzdata package, so that results do not depend on the host's database.
@cache
def _names() -> Mapping[str, str]:
    names = files("tzdata").joinpath("zones").read_text(encoding="utf-8").split()
    return {name.lower(): name for name in names}


@cache
def _zone_info(name: str) -> ZoneInfo:
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


# Records in one response share many times: those of a venue are repeated in each of its events.
@lru_cache(10_000)
def _convert(moment: datetime, fold: int, source: tzinfo, target: tzinfo) -> datetime:
    # `fold` is a separate parameter because datetimes that differ only in it are equal as cache keys.
    return moment.replace(tzinfo=source, fold=fold).astimezone(target).replace(tzinfo=None, fold=0)


def _end_of_gap(zone: Zone, wall: datetime) -> datetime:
    """The first instant after the gap that skips this wall-clock time."""
    late = zone.to_utc(wall)
    length = zone.to_wall(late) - wall
    early = late - length
    seconds = range(int(length.total_seconds()) + 1)
    return early + timedelta(
        seconds=bisect_left(seconds, wall, key=lambda second: zone.to_wall(early + timedelta(seconds=second)))
    )


def _within_years(convert: Callable[[], datetime]) -> datetime:
    try:
        return convert()
    except OverflowError:
        raise ValueError(
            Text("The date must be within the years 1 to 9999, in UTC and in its time zone.")
        ) from None
