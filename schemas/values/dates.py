"""Parses the dates in requests and formats the dates in responses."""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from email.utils import format_datetime
from functools import lru_cache
from typing import cast

from schemas.language import Text
from schemas.values.zones import MIDNIGHT, Zone

MAX_DATE_CHARS = 64
EPOCH = datetime(1970, 1, 1)
FIRST, LAST = datetime.min, datetime.max.replace(microsecond=0)
CALENDAR = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?P<time>[ T](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?"
    r"(?P<offset>Z|(?P<sign>[+-])(?P<hours>[01]\d|2[0-3])(?::?(?P<minutes>[0-5]\d))?)?)?",
    re.ASCII | re.IGNORECASE,
)
TIMESTAMP = re.compile(r"@?(-?\d{9,})", re.ASCII)
SHIFT = r" *([+-]) *(\d{1,9}) *(second|minute|hour|day|week|month|year)s?"
WORDS = re.compile(
    rf"(?P<word>now|today|tomorrow|yesterday)?(?P<shifts>(?:{SHIFT})*)", re.ASCII | re.IGNORECASE
)
DAY_WORDS = {"yesterday": -1, "today": 0, "tomorrow": 1}
CLOCK_UNITS = ("second", "minute", "hour")


@dataclass(frozen=True)
class Moment:
    """A parsed date: either wall-clock time without a zone, or an instant in UTC."""

    wall: datetime | None = None
    instant: datetime | None = None
    is_day: bool = False

    def utc(self, zone: Zone) -> datetime:
        """The instant in UTC; wall-clock time is interpreted in the zone."""
        return cast(datetime, self.instant) if self.wall is None else zone.to_utc(self.wall)

    def in_zone(self, zone: Zone) -> datetime:
        """The wall-clock time in the zone."""
        return zone.to_wall(self.utc(zone))

    def day(self, zone: Zone) -> date:
        """The date as written; for an instant, the date in the zone."""
        return (self.wall or self.in_zone(zone)).date()

    def bound(self, zone: Zone, edge: time | None = None) -> datetime:
        """The instant in UTC as the bound of a filter, or that of the edge of the day. Up to 9999-12-31 means
        without an end, although in zones west of UTC that day ends in a year that does not exist."""
        try:
            return self.utc(zone) if edge is None else self._edge_of_day(zone, edge)
        except ValueError:
            return FIRST if cast(datetime, self.wall or self.instant) < EPOCH else LAST

    def _edge_of_day(self, zone: Zone, edge: time) -> datetime:
        # If clocks are set back at midnight, the last hour of the day occurs twice: it ends with the second.
        return zone.to_utc(zone.edge_of_day(self.day(zone), edge), is_last=edge != MIDNIGHT)


def parse_moment(value: object, now: datetime, zone: Zone) -> Moment:
    """Parses a date. Words such as `today` are relative to `now` (in UTC) as seen in `zone`."""
    try:
        return _parse(value, now, zone)
    except OverflowError:
        raise ValueError(Text("The date must be within the years 1 to 9999.")) from None


def is_fixed(text: str) -> bool:
    """Whether the text is an absolute date, independent of the current time."""
    return bool(CALENDAR.fullmatch(text) or TIMESTAMP.fullmatch(text))


# Most times are formatted repeatedly: local and UTC, in several events with the same venue, in later lists.
@lru_cache(10_000)
def show(moment: datetime) -> str:
    """Formats a time as `YYYY-MM-DD HH:MM:SS`."""
    return moment.isoformat(" ", "seconds")


@lru_cache(100)
def http_date(utc: datetime) -> str:
    """Formats a time as HTTP and RSS do: `Tue, 17 Nov 2026 01:22:27 GMT`."""
    return format_datetime(utc.replace(tzinfo=UTC), usegmt=True)


@lru_cache(1000)
def details(shown: str) -> dict[str, str]:
    """The parts of a formatted time. Cached results are shared: callers must not modify them."""
    return {
        "year": shown[:4],
        "month": shown[5:7],
        "day": shown[8:10],
        "hour": shown[11:13],
        "minutes": shown[14:16],
        "seconds": shown[17:],
    }


def _parse(value: object, now: datetime, zone: Zone) -> Moment:
    if isinstance(value, int) and not isinstance(value, bool):
        return Moment(instant=EPOCH + timedelta(seconds=value))
    text = value if isinstance(value, str) and len(value) <= MAX_DATE_CHARS else ""
    if moment := _on_calendar(text):
        return moment
    if match := TIMESTAMP.fullmatch(text):
        return Moment(instant=EPOCH + timedelta(seconds=int(match[1])))
    if text and (match := WORDS.fullmatch(text)):
        return _from_words(match, now, zone)
    raise ValueError(
        Text(
            "Not a valid date. Send YYYY-MM-DD, YYYY-MM-DD HH:MM:SS, an ISO 8601 time, a Unix timestamp, "
            "or now, today, tomorrow or yesterday, optionally shifted (today +7 days)."
        )
    )


@lru_cache(10_000)
def _on_calendar(text: str) -> Moment | None:
    """Parses an absolute calendar date; None if the text is not one."""
    if not (match := CALENDAR.fullmatch(text)):
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in match.group(1, 2, 3, 5, 6, 7))
    try:
        wall = datetime(year, month, day, hour, minute, second)
    except ValueError:
        raise ValueError(Text("This date or time does not exist.")) from None
    if not match["offset"]:
        return Moment(wall=wall, is_day=not match["time"])
    offset = timedelta(hours=int(match["hours"] or 0), minutes=int(match["minutes"] or 0))
    return Moment(instant=wall + offset if match["sign"] == "-" else wall - offset)


def _from_words(match: re.Match[str], now: datetime, zone: Zone) -> Moment:
    moment = Moment(instant=now)
    if (days := DAY_WORDS.get((match["word"] or "now").lower())) is not None:
        today = datetime.combine(zone.to_wall(now), time())
        moment = Moment(wall=today + timedelta(days=days), is_day=True)
    shift = _shift_instant if days is None else _shift_day
    for sign, count, unit in re.findall(SHIFT, match["shifts"].lower()):
        moment = shift(moment, int(sign + count), unit, zone)
    return moment


def _shift_instant(moment: Moment, count: int, unit: str, zone: Zone) -> Moment:
    if unit in CLOCK_UNITS:
        return Moment(instant=_shifted(moment.utc(zone), count, unit))
    # An instant, too: in an event with another zone it must not become wall-clock time of that zone.
    return Moment(instant=zone.to_utc(_shifted(moment.in_zone(zone), count, unit)))


def _shift_day(moment: Moment, count: int, unit: str, zone: Zone) -> Moment:
    is_day = moment.is_day and unit not in CLOCK_UNITS
    return Moment(wall=_shifted(cast(datetime, moment.wall), count, unit), is_day=is_day)


def _shifted(start: datetime, count: int, unit: str) -> datetime:
    if unit == "year":
        return _shift_months(start, count * 12)
    if unit == "month":
        return _shift_months(start, count)
    return start + timedelta(**{f"{unit}s": count})


def _shift_months(start: datetime, count: int) -> datetime:
    year, month = divmod(start.year * 12 + start.month - 1 + count, 12)
    if not 1 <= year <= 9999:
        raise OverflowError
    last = calendar.monthrange(year, month + 1)[1]
    return start.replace(year=year, month=month + 1, day=min(start.day, last))
