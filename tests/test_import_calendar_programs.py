"""Importing iCalendar files with what calendar programs get wrong, or write in their own way."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.store import Store
from tests.conftest import Api
from tests.import_runs import Imports
from tests.test_import_calendars import calendar, shown

ZONE = """BEGIN:VTIMEZONE
TZID:{}
BEGIN:STANDARD
DTSTART:16010101T030000
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=10
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:16010101T020000
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=3
END:DAYLIGHT
END:VTIMEZONE
"""
START = "DTSTART:20270104T100000Z\n"


@pytest.fixture
def imports(mongodb_uri: str, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Imports:
    return Imports(mongodb_uri, store, tmp_path, capsys)


@pytest.mark.parametrize(
    ("defined", "named", "zone"),
    [
        ("W. Europe Standard Time", "W. Europe Standard Time", "Europe/Berlin"),
        ("/freeassociation.sourceforge.net/Tzfile/Europe/Amsterdam",) * 2 + ("Europe/Amsterdam",),
        ("(UTC+01:00) Bern\\, Rome", "(UTC+01:00) Bern, Rome", "UTC+2"),
        ("Own Zone", '"Own Zone"', "UTC+2"),
    ],
)
async def test_zones_that_the_file_defines(
    defined: str, named: str, zone: str, api: Api, imports: Imports
) -> None:
    event = f"UID:a\nSUMMARY:Talk\nDTSTART;TZID={named}:20270705T190000\n"
    run = await imports.text("a.ics", calendar(event, before=ZONE.format(defined)))
    assert (run.status, run.said) == (0, [])
    found = (await shown(api))["Talk 2027-07-05"]
    assert (found["timezone"], found["utc_start_date"]) == (zone, "2027-07-05 17:00:00")


async def test_the_zone_of_the_calendar_may_have_the_name_of_windows(api: Api, imports: Imports) -> None:
    event = "UID:a\nSUMMARY:Talk\nDTSTART:20270705T190000\n"
    await imports.text("a.ics", calendar(event, before="X-WR-TIMEZONE:Romance Standard Time\n"))
    found = (await shown(api))["Talk 2027-07-05"]
    assert (found["timezone"], found["start_date"]) == ("Europe/Paris", "2027-07-05 19:00:00")


@pytest.mark.parametrize(
    ("line", "description"),
    [
        (
            "DESCRIPTION:one\ntwo, three\n\nhttp://example.org: four",
            "one<br>\ntwo, three<br>\nhttp://example.org: four",
        ),
        ("DESCRIPTION:Men &amp\\; women&#8217\\;s day &copy=1", "Men &amp; women’s day &amp;copy=1"),
        ("DESCRIPTION;ENCODING=QUOTED-PRINTABLE:t=C3=BC=0D=0A=3D; =\nlast", "tü<br>\n=; last"),
        ("DESCRIPTION;CHARSET=ISO-8859-1;ENCODING=QUOTED-PRINTABLE:t=FC, \\", "tü, \\"),
        ("X-ALT-DESC;FMTTYPE=text/html:<p>a</p>\\\\n<p>b</p>", "<p>a</p>\n<p>b</p>"),
    ],
)
async def test_descriptions(line: str, description: str, api: Api, imports: Imports) -> None:
    run = await imports.text("a.ics", calendar(f"UID:a\nSUMMARY:x\n{START}{line}\nLOCATION:Hall\n"))
    assert (run.status, run.said) == (0, [])
    found = (await shown(api))["x 2027-01-04"]
    assert (found["description"], found["venue"]["venue"]) == (description, "Hall")


async def test_names_that_the_reference_service_encodes(api: Api, imports: Imports) -> None:
    event = (
        f'UID:a\nSUMMARY:Kids &#038\\; Co\n{START}ORGANIZER;CN="Jane%20Doe":MAILTO:jane@example.org\n'
        "CATEGORIES:Camps,Kids &amp\\; Family\n"
    )
    await imports.text("a.ics", calendar(event))
    found = (await shown(api))["Kids & Co 2027-01-04"]
    assert found["organizer"][0]["organizer"] == "Jane Doe"
    assert [one["name"] for one in found["categories"]] == ["Camps", "Kids & Family"]


@pytest.mark.parametrize(
    "line", ["RRULE:", "EXDATE;VALUE=DATE:", "RDATE: ", "DTEND:", "RECURRENCE-ID;TZID=UTC:"]
)
async def test_times_without_a_value(line: str, imports: Imports) -> None:
    run = await imports.text("a.ics", calendar(f"UID:a\nSUMMARY:x\n{START}{line}\n"))
    assert (run.status, run.summary) == (0, {"events": (1, 0, 0, 0)})


async def test_times_that_are_folded_before_their_value(api: Api, imports: Imports) -> None:
    times = "DTSTART:\n 20270104T100000Z\nDTEND;TZID=UTC:\n 20270104T110000\n"
    run = await imports.text("a.ics", calendar(f"UID:a\nSUMMARY:x\n{times}"))
    assert (run.status, run.said) == (0, [])
    assert (await shown(api))["x 2027-01-04"]["end_date"] == "2027-01-04 11:00:00"


async def test_parameters_that_are_folded_before_the_value(imports: Imports) -> None:
    lines = 'RDATE:20270105T100000Z\nATTENDEE;CN="XYZ";ROLE=CHAIR\n ;RSVP=FALSE:mailto:xyz@example.org\n'
    run = await imports.text("a.ics", calendar(f"UID:a\nSUMMARY:x\n{START}{lines}"))
    assert (run.summary, run.said) == ({"events": (2, 0, 0, 0)}, [])


async def test_spaces_in_a_rule(api: Api, imports: Imports) -> None:
    rule = "RRULE:FREQ=DAILY;UNTIL=20270110T000000Z;BYDAY=MO, TU"
    await imports.text("a.ics", calendar(f"UID:a\nSUMMARY:x\n{START}{rule}\n"))
    assert sorted(await shown(api)) == ["x 2027-01-04", "x 2027-01-05"]


async def test_a_line_that_is_folded_inside_a_character(api: Api, imports: Imports, tmp_path: Path) -> None:
    text = calendar(
        f"UID:a\nSUMMARY:Grüße für 5 €\n{START}", f"UID:b\nSUMMARY:Bad\n{START}LOCATION:?\n"
    ).encode()
    folded = text.replace("ß".encode(), b"\xc3\r\n \x9f").replace("€".encode(), b"\xe2\x82\n\t\xac")
    path = tmp_path / "a.ics"
    path.write_bytes(folded.replace(b"?", b"K\xf6ln"))  # one text in another encoding spoils no others
    assert (await imports.run(str(path))).summary == {"events": (2, 0, 0, 0)}
    found = await shown(api)
    assert sorted(found) == ["Bad 2027-01-04", "Grüße für 5 € 2027-01-04"]
    assert found["Bad 2027-01-04"]["venue"]["venue"] == "Köln"


async def test_different_events_with_the_same_uid(api: Api, imports: Imports) -> None:
    first, second = (f"UID:a\nSUMMARY:x\nDTSTART:202701{day}T100000Z\n" for day in ("04", "05"))
    text = calendar(first, second, f"{first}LOCATION:Hall\n")
    assert (await imports.text("a.ics", text)).summary == {"events": (2, 0, 0, 0)}
    assert sorted(await shown(api)) == ["x 2027-01-04", "x 2027-01-05"]
    assert (await imports.text("a.ics", text)).summary == {"events": (0, 0, 2, 0)}
    revised = calendar(first, f"{second}SEQUENCE:1\n")
    assert (await imports.text("a.ics", revised)).summary == {"events": (0, 1, 0, 0)}
    assert (await shown(api))["x 2027-01-05"]


@pytest.mark.parametrize(
    ("lines", "count", "said"),
    [
        ("RRULE:FREQ=DAILY;COUNT=3\n", 1, "DTSTART is missing"),
        (f"{START}DTSTART:20270105T100000Z\n", 1, "DTSTART is there more than once"),
        (f"{START}RRULE:W1 FR #0\n", 1, "RRULE: FREQ is missing"),
        (f"{START}RDATE;VALUE=TIME:133000Z\n", 1, "not a valid event ("),
        (f"{START}RRULE:FREQ=DAILY;COUNT=30\n", 30, "Missing parameters: title."),
    ],
)
async def test_what_is_refused_is_said_once(lines: str, count: int, said: str, imports: Imports) -> None:
    run = await imports.text("a.ics", calendar(f"UID:a\n{lines}"))
    assert (run.status, run.summary, len(run.said)) == (1, {"events": (0, 0, 0, count)}, 1)
    assert run.said[0].startswith(f"line 3: {said}")
