"""An event as pages show it: its representation, with its days and times as its own time zone has them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from handlers.pages.localization import Localization


class ShownEvent:
    """An event."""

    def __init__(self, record: Mapping[str, Any], now: datetime) -> None:
        self.record = record
        self.start, self.end = (datetime.fromisoformat(record[name]) for name in ("start_date", "end_date"))
        self.ends = datetime.fromisoformat(record["utc_end_date"])
        self.is_past = self.ends <= now

    def __getattr__(self, name: str) -> Any:
        try:
            return self.record[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def path(self) -> str:
        return urlsplit(str(self.record["url"])).path

    @property
    def first_day(self) -> date:
        return self.start.date()

    @property
    def last_day(self) -> date:
        """The last day on which it is shown: what ends at midnight does not reach into the next day."""
        ends_at_midnight = self.end.time() == time() and self.end > self.start
        return (self.end - timedelta(seconds=1) if ends_at_midnight else self.end).date()

    def is_within(self, first: date, last: date) -> bool:
        """Whether it is on any of the days from the first to the last."""
        return self.first_day <= last and self.last_day >= first

    @property
    def has_several_days(self) -> bool:
        return self.last_day > self.first_day

    @cached_property
    def places(self) -> list[Mapping[str, Any]]:
        """The venues."""
        venue = self.record["venue"]
        return venue if isinstance(venue, list) else [venue]

    @property
    def place(self) -> Mapping[str, Any] | None:
        """The venue, the first one if there are several."""
        return self.places[0] if self.places else None

    def when(self, local: Localization) -> str:
        """Its days and times, in one line."""
        is_whole_day = self.start.time() == self.end.time() == time() and self.end > self.start
        if self.all_day or is_whole_day:
            return local.days(self.first_day, self.last_day)
        if self.has_several_days:
            return " – ".join(
                f"{local.brief_day(edge)}, {local.time(edge)}" for edge in (self.start, self.end)
            )
        return f"{local.brief_day(self.first_day)}, {local.times(self.start, self.end, lasts=self.lasts)}"

    @property
    def lasts(self) -> bool:
        """Whether time passes between start and end; clocks may show the same if they are set back."""
        return bool(self.record["utc_start_date"] != self.record["utc_end_date"])

    @property
    def iso_start(self) -> str:
        return str(self.record["utc_start_date"]).replace(" ", "T") + "Z"

    @property
    def iso_end(self) -> str:
        return str(self.record["utc_end_date"]).replace(" ", "T") + "Z"
