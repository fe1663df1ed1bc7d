"""Dates and times as they are written in each language, and where its weeks begin."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from functools import cache

from babel import Locale
from babel.dates import format_date, format_interval, format_skeleton, format_time, get_day_names

TERRITORIES = {"en": "US", "de": "DE", "es": "ES", "fr": "FR"}
"""The country whose customs are used for a language."""


@dataclass(frozen=True)
class Localization:
    """The customs of one language."""

    locale: Locale

    @property
    def first_weekday(self) -> int:
        """0 for Monday, 6 for Sunday."""
        return int(self.locale.first_week_day)

    @property
    def weekdays(self) -> list[tuple[str, str]]:
        """(short name, name) of each day in the order of a week."""
        short, long = (get_day_names(width, "stand-alone", self.locale) for width in ("abbreviated", "wide"))
        return [(short[at % 7], long[at % 7]) for at in range(self.first_weekday, self.first_weekday + 7)]

    def month(self, day: date) -> str:
        return self._capitalized(format_skeleton("yMMMM", day, locale=self.locale))

    def day(self, day: date) -> str:
        return self._capitalized(format_date(day, "full", locale=self.locale))

    def brief_day(self, day: date) -> str:
        """A day in few letters."""
        return self._capitalized(format_skeleton("yMMMEd", day, locale=self.locale))

    def short_day(self, day: date) -> str:
        """A day without its year."""
        return format_skeleton("MMMd", day, locale=self.locale)

    def days(self, first: date, last: date) -> str:
        if first == last:
            return self.brief_day(first)
        return self._capitalized(format_interval(first, last, "yMMMEd", locale=self.locale))

    def time(self, time: datetime) -> str:
        return format_time(time, "short", locale=self.locale)

    def times(self, start: datetime, end: datetime, *, lasts: bool) -> str:
        """The span between two times of one day. If clocks are set back, the later one may be the lower."""
        if not lasts:
            return self.time(start)
        if end <= start:
            return f"{self.time(start)} – {self.time(end)}"
        return format_interval(start, end, self._clock, locale=self.locale)

    @property
    def _clock(self) -> str:
        return "hm" if "a" in self.locale.time_formats["short"].pattern else "Hm"

    def _capitalized(self, text: str) -> str:
        """Titles begin with a capital letter, also where the names of days and months do not."""
        return text[:1].upper() + text[1:]


@cache
def localization(language: str) -> Localization:
    return Localization(Locale(language, TERRITORIES[language]))
