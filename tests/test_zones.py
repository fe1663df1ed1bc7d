"""Zones: what is accepted, and both ways between wall clocks and UTC."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from importlib.resources import files
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.language import Text
from schemas.values.zones import Zone, parse_zone

NAMES = sorted(files("tzdata").joinpath("zones").read_text().split())
NEW_YORK = "America/New_York"
JUNE = datetime(2027, 6, 1, 12)

ACCEPTED = [
    ("America/New_York", "America/New_York", -4, "EDT", "an IANA name"),
    ("america/new_york", "America/New_York", -4, "EDT", "any case, shown canonically"),
    (
        "AMERICA/ARGENTINA/BUENOS_AIRES",
        "America/Argentina/Buenos_Aires",
        -3,
        "-03",
        "three parts, numeric name",
    ),
    ("Europe/Kiev", "Europe/Kiev", 3, "EEST", "an old name stays the one that was sent"),
    ("Europe/Istanbul", "Europe/Istanbul", 3, "+03", "a zone without letters"),
    ("Etc/GMT-2", "Etc/GMT-2", 2, "+02", "POSIX signs are the other way round"),
    ("GMT", "GMT", 0, "GMT", "an IANA name without a slash"),
    ("est", "EST", -5, "EST", "a fixed IANA zone"),
    ("UTC", "UTC", 0, "UTC", "UTC itself"),
    ("utc", "UTC", 0, "UTC", "in any case"),
    ("Z", "UTC", 0, "UTC", "Zulu time"),
    ("UTC+0", "UTC+0", 0, "UTC+0", "as sent"),
    ("UTC+2", "UTC+2", 2, "UTC+2", "whole hours"),
    ("utc+2", "UTC+2", 2, "UTC+2", "upper-cased"),
    ("UTC-5:30", "UTC-5:30", -5.5, "UTC-5:30", "the sign covers the minutes too"),
    ("UTC+5.5", "UTC+5.5", 5.5, "UTC+5.5", "hours as a decimal"),
    ("UTC-9.5", "UTC-9.5", -9.5, "UTC-9.5", "west, as a decimal"),
    ("UTC+12.75", "UTC+12.75", 12.75, "UTC+12.75", "Chatham"),
    ("UTC+14", "UTC+14", 14, "UTC+14", "the eastmost"),
    ("UTC-12", "UTC-12", -12, "UTC-12", "the westmost"),
    ("+02:00", "+02:00", 2, "GMT+0200", "an ISO offset"),
    ("-0530", "-0530", -5.5, "GMT-0530", "without colon"),
    ("+2", "+2", 2, "GMT+0200", "hours alone"),
]

REFUSED = [
    ("", "empty"),
    ("Foo", "no such zone"),
    ("Mars/Phobos", "no such zone"),
    ("UTC 2", "a plus lost in a URL"),
    ("2", "no sign"),
    ("UTC2", "no sign"),
    (" America/New_York ", "blanks around"),
    ("UTC+2\n", "a line break at the end"),
    ("../../etc/passwd", "a path"),
    ("/etc/localtime", "a path"),
    ("America", "a folder"),
    ("posixrules", "a file of the host"),
    ("localtime", "a file of the host"),
    ("UTC+14:01", "beyond the eastmost"),
    ("UTC-12.5", "beyond the westmost"),
    ("UTC+99", "far beyond"),
    ("UTC+2:99", "no such minute"),
    ("UTC+5.33", "not whole minutes"),
    ("+530", "neither hours nor hours and minutes"),
    ("UTC+٢", "digits that are not ASCII"),
    ("UTC+", "nothing after the sign"),
    ("Europe/Paris\x00", "NUL"),
    ("x" * 100_000, "long"),
]


@pytest.mark.parametrize(
    ("text", "name", "hours", "abbreviation", "why"), ACCEPTED, ids=[row[0] for row in ACCEPTED]
)
def test_accepts(text: str, name: str, hours: float, abbreviation: str, why: str) -> None:
    zone = parse_zone(text)
    assert zone.name == name, why
    assert zone.to_wall(JUNE) == JUNE + timedelta(hours=hours), why
    assert zone.to_utc(JUNE) == JUNE - timedelta(hours=hours), why
    assert zone.abbreviation(JUNE) == abbreviation, why
    assert parse_zone(zone.name) == zone, why


@pytest.mark.parametrize(("text", "why"), REFUSED, ids=[row[-1] for row in REFUSED])
def test_refuses(text: str, why: str) -> None:
    with pytest.raises(ValueError) as refusal:
        parse_zone(text)
    assert isinstance(refusal.value.args[0], Text), why


def test_a_gap_moves_the_clock_forward() -> None:
    zone = parse_zone(NEW_YORK)
    utc = zone.to_utc(datetime(2027, 3, 14, 2, 30))
    assert utc == datetime(2027, 3, 14, 7, 30)
    assert zone.to_wall(utc) == datetime(2027, 3, 14, 3, 30)


def test_a_skipped_day_moves_the_clock_forward() -> None:
    zone = parse_zone("Pacific/Apia")
    assert zone.to_wall(zone.to_utc(datetime(2011, 12, 30, 9))) == datetime(2011, 12, 31, 9)


@pytest.mark.parametrize("fold", [0, 1])
def test_an_overlap_means_the_first_occurrence(fold: int) -> None:
    wall = datetime(2027, 11, 7, 1, 30, fold=fold)
    assert parse_zone(NEW_YORK).to_utc(wall) == datetime(2027, 11, 7, 5, 30)


def test_the_abbreviation_follows_the_season() -> None:
    zone = parse_zone("Europe/Paris")
    assert [zone.abbreviation(datetime(2027, month, 1)) for month in (1, 7)] == ["CET", "CEST"]


def test_wall_clocks_carry_no_fold() -> None:
    assert parse_zone(NEW_YORK).to_wall(datetime(2027, 11, 7, 6, 30)).fold == 0


def answer_or_refusal(convert: Callable[[datetime], object], edge: datetime) -> object:
    try:
        return convert(edge)
    except ValueError as refusal:
        return refusal.args[0] if isinstance(refusal.args[0], Text) else refusal


@pytest.mark.parametrize("edge", [datetime.min, datetime.max.replace(microsecond=0)])
@pytest.mark.parametrize("name", [*NAMES, "UTC+14", "UTC-12", "+05:30"])
def test_the_edges_of_time_answer_or_refuse(name: str, edge: datetime) -> None:
    zone = parse_zone(name)
    for convert in (zone.to_utc, zone.to_wall, zone.abbreviation):
        assert isinstance(answer_or_refusal(convert, edge), datetime | str)


@pytest.mark.parametrize("name", ["America/New_York", "Asia/Tokyo", "UTC+2", "UTC-2"])
def test_one_edge_of_time_is_out_of_reach(name: str) -> None:
    zone = parse_zone(name)
    outside = datetime.max if zone.to_wall(JUNE) < JUNE else datetime.min
    with pytest.raises(ValueError, match="years 1 to 9999"):
        zone.to_utc(outside)


instants = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)).map(lambda at: at.replace(microsecond=0))
zones = st.sampled_from(NAMES)


def plain(name: str) -> ZoneInfo:
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file)


@given(zones, instants)
def test_wall_clocks_agree_with_zoneinfo(name: str, utc: datetime) -> None:
    expected = utc.replace(tzinfo=UTC).astimezone(plain(name))
    zone = parse_zone(name)
    assert zone.to_wall(utc) == expected.replace(tzinfo=None)
    assert zone.abbreviation(utc) == (expected.tzname() if name != "UTC" else "UTC")


@given(zones, instants)
def test_the_way_back_leads_to_the_first_such_instant(name: str, utc: datetime) -> None:
    zone = parse_zone(name)
    wall = zone.to_wall(utc)
    back = zone.to_utc(wall)
    assert zone.to_wall(back) == wall
    is_second = utc.replace(tzinfo=UTC).astimezone(plain(name)).fold == 1
    assert back < utc if is_second else back == utc


@given(zones, instants)
def test_a_gap_shifts_by_its_own_length(name: str, wall: datetime) -> None:
    shifted = parse_zone(name).to_wall(parse_zone(name).to_utc(wall))
    before, after = (
        wall.replace(tzinfo=plain(name), fold=fold).utcoffset() or timedelta() for fold in (0, 1)
    )
    assert shifted - wall == max(after - before, timedelta())


START, END = time(0, 0, 0), time(23, 59, 59)
CHANGES_AT_MIDNIGHT = [
    ("America/Scoresbysund", date(2027, 3, 27), START, time(22, 59, 59)),
    ("America/Nuuk", date(2024, 3, 30), START, time(22, 59, 59)),
    ("America/Toronto", date(1919, 3, 30), START, time(23, 29, 59)),
    ("America/Toronto", date(1919, 3, 31), time(0, 30), END),
    ("America/Sao_Paulo", date(2018, 11, 4), time(1), END),
    ("America/Asuncion", date(2024, 10, 6), time(1), END),
    ("America/Havana", date(2024, 3, 10), time(1), END),
    ("Asia/Beirut", date(2024, 3, 31), time(1), END),
    ("Asia/Amman", date(2021, 3, 26), time(1), END),
    ("Asia/Tehran", date(2021, 3, 22), time(1), END),
    ("Africa/Cairo", date(2024, 4, 26), time(1), END),
    ("Africa/Monrovia", date(1972, 1, 7), time(0, 44, 30), END),
    ("Pacific/Apia", date(2011, 12, 29), START, END),
    ("Pacific/Apia", date(2011, 12, 31), START, END),
]


@pytest.mark.parametrize(("name", "day", "first", "last"), CHANGES_AT_MIDNIGHT)
def test_a_day_whose_edge_the_clock_skips(name: str, day: date, first: time, last: time) -> None:
    zone = parse_zone(name)
    assert zone.edge_of_day(day, START) == datetime.combine(day, first)
    assert zone.edge_of_day(day, END) == datetime.combine(day, last)


@pytest.mark.parametrize(
    ("name", "day"),
    [
        ("Pacific/Apia", date(2011, 12, 30)),
        ("Pacific/Kwajalein", date(1993, 8, 21)),
        ("Pacific/Kiritimati", date(1994, 12, 31)),
    ],
)
def test_a_day_that_is_skipped_altogether_is_the_next(name: str, day: date) -> None:
    for edge in (START, END):
        expected = datetime.combine(day + timedelta(days=1), edge)
        assert parse_zone(name).edge_of_day(day, edge) == expected


days = st.one_of(
    st.tuples(zones, st.dates(date(1900, 1, 1), date(2100, 1, 1))),
    st.sampled_from([row[:2] for row in CHANGES_AT_MIDNIGHT]),
    st.builds(
        lambda row, years: (row[0], row[1] + timedelta(days=round(365.25 * years))),
        st.sampled_from(CHANGES_AT_MIDNIGHT),
        st.integers(-40, 40),
    ),
)


@given(days, st.integers(-4, 4))
def test_edges_of_a_day_are_its_first_and_last_seconds(place: tuple[str, date], shift: int) -> None:
    name, day = place[0], place[1] + timedelta(days=shift)
    zone, info, second = parse_zone(name), plain(name), timedelta(seconds=1)
    for edge, step in ((START, -second), (END, second)):
        shown = zone.edge_of_day(day, edge)
        utc = zone.to_utc(shown)
        assert zone.to_wall(utc) == shown
        wall = datetime.combine(day, edge)
        if wall.replace(tzinfo=info).astimezone(UTC).astimezone(info).replace(tzinfo=None) == wall:
            assert shown == wall
        elif shown.date() == day:
            beyond = (utc + step).replace(tzinfo=UTC).astimezone(info).date()
            assert beyond < day if edge == START else beyond > day
        else:
            assert {zone.edge_of_day(day, one).date() for one in (START, END)} == {day + timedelta(days=1)}


def test_zones_are_values() -> None:
    assert parse_zone("asia/tokyo") == parse_zone("Asia/Tokyo")
    assert isinstance(hash(parse_zone("+02:00")), int)
    assert parse_zone("UTC") == Zone("UTC", UTC)
