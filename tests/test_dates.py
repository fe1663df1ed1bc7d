"""Dates: every spelling that is accepted, those that are refused, and how dates are shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.language import Text
from schemas.values.dates import Moment, details, parse_moment, show
from schemas.values.zones import parse_zone

# In Tokyo it is already the next day.
NOW = datetime(2027, 1, 31, 20, 30, 15)
TOKYO = parse_zone("Asia/Tokyo")
NEW_YORK = parse_zone("America/New_York")


def wall(*parts: int) -> Moment:
    return Moment(wall=datetime(*parts))  # type: ignore[arg-type]


def day(*parts: int) -> Moment:
    return Moment(wall=datetime(*parts), is_day=True)  # type: ignore[arg-type]


def instant(*parts: int) -> Moment:
    return Moment(instant=datetime(*parts))  # type: ignore[arg-type]


ACCEPTED = [
    ("2027-06-01", day(2027, 6, 1), "a day"),
    ("2028-02-29", day(2028, 2, 29), "a leap day"),
    ("0001-01-01", day(1, 1, 1), "the first day"),
    ("9999-12-31", day(9999, 12, 31), "the last day"),
    ("2027-06-01 10:30", wall(2027, 6, 1, 10, 30), "without seconds"),
    ("2027-06-01 10:30:15", wall(2027, 6, 1, 10, 30, 15), "in full"),
    ("2027-06-01 00:00:00", wall(2027, 6, 1), "midnight is a time, not a day"),
    ("2027-06-01T10:30", wall(2027, 6, 1, 10, 30), "ISO"),
    ("2027-06-01t10:30:15", wall(2027, 6, 1, 10, 30, 15), "ISO, lower case"),
    ("2027-06-01T10:30:15.999", wall(2027, 6, 1, 10, 30, 15), "a fraction is dropped, not rounded"),
    ("2027-06-01T10:30:15,5", wall(2027, 6, 1, 10, 30, 15), "ISO allows a comma"),
    ("2027-06-01T10:00:00Z", instant(2027, 6, 1, 10), "UTC"),
    ("2027-06-01t10:00:00.123456789z", instant(2027, 6, 1, 10), "lower case with fraction"),
    ("2027-06-01T10:00Z", instant(2027, 6, 1, 10), "no seconds"),
    ("2027-06-01T10:00:00+05:00", instant(2027, 6, 1, 5), "east"),
    ("2027-06-01T10:00:00-05:30", instant(2027, 6, 1, 15, 30), "west"),
    ("2027-06-01T10:00:00+0530", instant(2027, 6, 1, 4, 30), "no colon"),
    ("2027-06-01T10:00:00+05", instant(2027, 6, 1, 5), "hours alone"),
    ("2027-06-01 10:00:00+05:00", instant(2027, 6, 1, 5), "a blank for the T"),
    ("2027-01-01T00:30:00+01:00", instant(2026, 12, 31, 23, 30), "across the year"),
    (1811930400, instant(2027, 6, 2, 10), "a timestamp"),
    ("1811930400", instant(2027, 6, 2, 10), "a timestamp as text"),
    ("@1811930400", instant(2027, 6, 2, 10), "marked as a timestamp"),
    ("123456789", instant(1973, 11, 29, 21, 33, 9), "the shortest text that is one"),
    ("-123456789", instant(1966, 2, 2, 2, 26, 51), "before 1970"),
    (0, instant(1970, 1, 1), "zero is a number like any other"),
    (-1, instant(1969, 12, 31, 23, 59, 59), "one second before"),
    ("now", instant(2027, 1, 31, 20, 30, 15), "now"),
    ("NOW", instant(2027, 1, 31, 20, 30, 15), "any case"),
    ("today", day(2027, 2, 1), "today in the zone"),
    ("Tomorrow", day(2027, 2, 2), "tomorrow in the zone"),
    ("yesterday", day(2027, 1, 31), "yesterday in the zone"),
    ("now +3 hours", instant(2027, 1, 31, 23, 30, 15), "hours pass on every clock"),
    ("now -30 minutes", instant(2027, 1, 31, 20, 0, 15), "back"),
    ("now+1second", instant(2027, 1, 31, 20, 30, 16), "without blanks"),
    ("now +7 days", instant(2027, 2, 7, 20, 30, 15), "now is an instant, and so is a day after it"),
    ("+1 week", instant(2027, 2, 7, 20, 30, 15), "a bare shift starts now"),
    ("-1 month", instant(2026, 12, 31, 20, 30, 15), "a month back, on the wall clock of the zone"),
    ("+2 years", instant(2029, 1, 31, 20, 30, 15), "years"),
    ("+1 HOUR", instant(2027, 1, 31, 21, 30, 15), "any case"),
    ("now +1 day +1 hour", instant(2027, 2, 1, 21, 30, 15), "a day, then an hour"),
    ("today +7 days", day(2027, 2, 8), "still a day"),
    ("today + 1 week", day(2027, 2, 8), "a blank after the sign"),
    ("today +1 month +2 days", day(2027, 3, 3), "several shifts, in order"),
    ("tomorrow -1 year", day(2026, 2, 2), "years back"),
    ("yesterday +1 month", day(2027, 2, 28), "31 January + 1 month is the last of February"),
    ("yesterday +13 months", day(2028, 2, 29), "in a leap year too"),
    ("today +3 hours", wall(2027, 2, 1, 3), "hours make a day a time"),
    ("today +24 hours +1 day", wall(2027, 2, 3), "and it stays one"),
    ("today +0 days", day(2027, 2, 1), "nothing"),
]

REFUSED = [
    ("", "empty"),
    (" ", "blank"),
    ("garbage", "no date"),
    ("06/03/2027", "ambiguous"),
    ("06/03/2027 10:00", "ambiguous"),
    ("June 3, 2027 10am", "prose"),
    ("next monday", "prose"),
    ("2027", "a year"),
    ("2027-06", "a month"),
    ("5", "too short for a timestamp"),
    ("0", "too short for a timestamp"),
    ("12345678", "too short for a timestamp"),
    ("20270310", "not clearly a date or a timestamp"),
    ("2027-3-9", "not padded"),
    ("2027-W10-3", "a week date"),
    ("2027-069", "an ordinal date"),
    ("2027-02-30", "30 February"),
    ("2027-02-29", "no leap year"),
    ("2027-13-01", "month 13"),
    ("2027-00-10", "month 0"),
    ("0000-01-01", "year 0"),
    ("10000-01-01", "year 10000"),
    ("-2027-06-01", "a negative year"),
    ("2027-06-01 24:00:00", "hour 24"),
    ("2027-06-01 23:59:60", "a leap second"),
    ("2027-06-01 10:60", "minute 60"),
    ("24:00:00", "a time without a day"),
    ("2027-06-01 10", "an hour alone"),
    ("2027-06-01T", "nothing after the T"),
    ("2027-06-01Z", "a day has no offset"),
    ("2027-06-01T10:00:00 05:00", "a plus lost in a URL"),
    ("2027-06-01T10:00:00+24:00", "an offset of a day"),
    ("2027-06-01T10:00:00+05:60", "minute 60 in the offset"),
    ("2027-06-01T10:00.5", "a fraction of a minute"),
    (" 2027-06-01", "a blank before"),
    ("2027-06-01\n", "a line break after"),
    ("2027-06-01\x00", "NUL"),
    ("２０２７-06-01", "digits that are not ASCII"),
    ("٢٠٢٧٠٦٠١٠", "digits that are not ASCII"),
    ("0001-01-01T00:00:00+01:00", "before year 1 in UTC"),
    ("9999-12-31T23:59:59-00:01", "after year 9999 in UTC"),
    ("99999999999999", "a timestamp beyond year 9999"),
    ("9" * 60, "a huge timestamp"),
    (10**12, "milliseconds"),
    (10**400, "a huge number"),
    (-(10**400), "a huge negative number"),
    ("now +9999 years", "beyond year 9999"),
    ("now -999999999 months", "before year 1"),
    ("now +999999999 weeks", "more than a timedelta holds"),
    ("now +9999999999 days", "too many digits"),
    ("now 7 days", "no sign"),
    ("now +7", "no unit"),
    ("now +7 fortnights", "no such unit"),
    ("now +1.5 days", "a fraction"),
    ("today tomorrow", "two words"),
    ("+", "a sign alone"),
    ("now" + " +1 day" * 20, "longer than any date"),
    ("2027-06-01T10:00:00." + "0" * 100_000, "longer than any date"),
    (True, "a boolean"),
    (False, "a boolean"),
    (None, "nothing"),
    (1811930400.0, "a float"),
    (1811930400.5, "a float"),
    (float("nan"), "not a number"),
    (["2027-06-01"], "a list"),
    ({"date": "2027-06-01"}, "an object"),
    (b"2027-06-01", "bytes"),
]


@pytest.mark.parametrize(("value", "expected", "why"), ACCEPTED, ids=[str(row[0]) for row in ACCEPTED])
def test_accepts(value: object, expected: Moment, why: str) -> None:
    assert parse_moment(value, NOW, TOKYO) == expected, why


@pytest.mark.parametrize(("value", "why"), REFUSED, ids=[row[-1] for row in REFUSED])
def test_refuses(value: object, why: str) -> None:
    with pytest.raises(ValueError) as refusal:
        parse_moment(value, NOW, TOKYO)
    assert isinstance(refusal.value.args[0], Text), why


def test_tomorrow_can_lie_beyond_the_calendar() -> None:
    last = datetime(9999, 12, 31, 12)
    with pytest.raises(ValueError, match="years 1 to 9999"):
        parse_moment("tomorrow", last, parse_zone("UTC"))


def test_an_instant_is_shown_on_the_clock_of_a_zone() -> None:
    moment = parse_moment("2027-06-03T10:00:00+05:00", NOW, TOKYO)
    assert moment.utc(NEW_YORK) == datetime(2027, 6, 3, 5)
    assert moment.in_zone(NEW_YORK) == datetime(2027, 6, 3, 1)


def test_a_wall_clock_is_read_in_a_zone() -> None:
    moment = parse_moment("2027-06-01 10:00:00", NOW, TOKYO)
    assert moment.utc(NEW_YORK) == datetime(2027, 6, 1, 14)
    assert moment.in_zone(NEW_YORK) == datetime(2027, 6, 1, 10)


def test_a_wall_clock_in_a_gap_moves_forward() -> None:
    moment = parse_moment("2027-03-14 02:30", NOW, TOKYO)
    assert moment.in_zone(NEW_YORK) == datetime(2027, 3, 14, 3, 30)


def test_a_day_more_keeps_the_hour_across_a_change_of_clocks() -> None:
    noon_before = datetime(2027, 3, 13, 17)
    assert parse_moment("+1 day", noon_before, NEW_YORK).in_zone(NEW_YORK) == datetime(2027, 3, 14, 12)
    assert parse_moment("+24 hours", noon_before, NEW_YORK).in_zone(NEW_YORK) == datetime(2027, 3, 14, 13)


@pytest.mark.parametrize(
    ("moment", "shown"),
    [
        (datetime(1, 2, 3, 4, 5, 6), "0001-02-03 04:05:06"),
        (datetime(987, 1, 1), "0987-01-01 00:00:00"),
        (datetime(2027, 6, 1, 10, 0, 0, 999), "2027-06-01 10:00:00"),
        (datetime(9999, 12, 31, 23, 59, 59), "9999-12-31 23:59:59"),
    ],
)
def test_shows_every_part_in_full(moment: datetime, shown: str) -> None:
    assert show(moment) == shown


def test_details_are_padded_strings() -> None:
    parts = {"year": "0027", "month": "06", "day": "01", "hour": "09", "minutes": "05", "seconds": "00"}
    assert details(show(datetime(27, 6, 1, 9, 5))) == parts
    assert list(details(show(NOW))) == list(parts)


seconds = st.datetimes().map(lambda at: at.replace(microsecond=0))
offsets = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timedelta(minutes=minutes))


@given(seconds)
def test_what_is_shown_is_read_back(moment: datetime) -> None:
    assert parse_moment(show(moment), NOW, TOKYO) == Moment(wall=moment)


@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)), offsets)
def test_iso_times_agree_with_the_standard_library(wall_clock: datetime, offset: timedelta) -> None:
    sign, minutes = "-" if offset < timedelta() else "+", abs(offset) // timedelta(minutes=1)
    text = f"{wall_clock.isoformat()}{sign}{minutes // 60:02}:{minutes % 60:02}"
    expected = datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None, microsecond=0)
    assert parse_moment(text, NOW, TOKYO) == Moment(instant=expected)


@given(seconds.filter(lambda at: at.year > 1))
def test_timestamps_agree_with_the_standard_library(moment: datetime) -> None:
    stamp = int(moment.replace(tzinfo=UTC).timestamp())
    assert parse_moment(stamp, NOW, TOKYO) == Moment(instant=moment)


@given(st.text(max_size=80) | st.from_regex(r"[0-9TZ:+\-. @a-z]{0,70}", fullmatch=True))
def test_any_text_is_a_date_or_refused(text: str) -> None:
    answer = moment_or_refusal(text)
    is_one = isinstance(answer, Moment) and (answer.wall is None) != (answer.instant is None)
    assert is_one or isinstance(answer, Text)


def moment_or_refusal(text: str) -> object:
    try:
        return parse_moment(text, NOW, TOKYO)
    except ValueError as refusal:
        return refusal.args[0]


@given(st.integers(-2000, 2000))
def test_months_never_spill_over(count: int) -> None:
    moment = parse_moment(f"yesterday {count:+} months", NOW, TOKYO).wall
    assert moment is not None
    assert (moment.year * 12 + moment.month) - (2027 * 12 + 1) == count
