"""Importing iCalendar files as Outlook, Google and Apple write them, and what Kalends itself writes."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from service.store import Store
from tests.checker import agrees
from tests.conftest import Api
from tests.import_runs import Imports, copied

OUTLOOK = """BEGIN:VCALENDAR
PRODID:-//Microsoft Corporation//Outlook 16.0 MIMEDIR//EN
VERSION:2.0
METHOD:PUBLISH
BEGIN:VTIMEZONE
TZID:Customized Time Zone
BEGIN:STANDARD
DTSTART:16011028T030000
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:16010325T020000
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
END:DAYLIGHT
END:VTIMEZONE
BEGIN:VEVENT
CLASS:PUBLIC
UID:040000008200E00074C5B7101A82E008
DTSTART;TZID="W. Europe Standard Time":20270705T190000
DTEND;TZID="W. Europe Standard Time":20270705T210000
SUMMARY;LANGUAGE=de:Stadtrat\\, Sitzung
LOCATION:Rathaus
ORGANIZER;CN="Muster, Erika":mailto:erika@example.org
DESCRIPTION:Plain\\nonly
X-ALT-DESC;FMTTYPE=text/html:<html><body><p>With <b>markup</b>\\, too</p></body>
 </html>
END:VEVENT
BEGIN:VEVENT
UID:custom-zone
DTSTART;TZID=Customized Time Zone:20270705T100000
DTEND;TZID=Customized Time Zone:20270705T110000
SUMMARY:In a zone that only the file knows
END:VEVENT
BEGIN:VEVENT
UID:outlook-all-day
DTSTART;TZID=Pacific Standard Time:20270710T000000
DTEND;TZID=Pacific Standard Time:20270712T000000
X-MICROSOFT-CDO-ALLDAYEVENT:TRUE
SUMMARY:Two days
CLASS:PRIVATE
END:VEVENT
END:VCALENDAR
"""
GOOGLE = """BEGIN:VCALENDAR
PRODID:-//Google Inc//Google Calendar 70.9054//EN
VERSION:2.0
CALSCALE:GREGORIAN
X-WR-CALNAME:Choir
X-WR-TIMEZONE:America/New_York
BEGIN:VTIMEZONE
TZID:America/New_York
X-LIC-LOCATION:America/New_York
BEGIN:DAYLIGHT
TZOFFSETFROM:-0500
TZOFFSETTO:-0400
TZNAME:EDT
DTSTART:19700308T020000
RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=2SU
END:DAYLIGHT
BEGIN:STANDARD
TZOFFSETFROM:-0400
TZOFFSETTO:-0500
TZNAME:EST
DTSTART:19701101T020000
RRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=1SU
END:STANDARD
END:VTIMEZONE
BEGIN:VEVENT
DTSTART;TZID=America/New_York:20270302T190000
DTEND;TZID=America/New_York:20270302T210000
RRULE:FREQ=WEEKLY;UNTIL=20270406T035959Z;BYDAY=TU
EXDATE;TZID=America/New_York:20270309T190000
UID:rehearsal@google.com
SUMMARY:Rehearsal
LOCATION:Town Hall\\, 1 Main St\\, Springfield
ORGANIZER;CN=Choir:mailto:abc@group.calendar.google.com
END:VEVENT
BEGIN:VEVENT
DTSTART;TZID=America/New_York:20270317T200000
DTEND;TZID=America/New_York:20270317T220000
RECURRENCE-ID;TZID=America/New_York:20270316T190000
UID:rehearsal@google.com
SUMMARY:Rehearsal on Wednesday
END:VEVENT
BEGIN:VEVENT
DTSTART;TZID=America/New_York:20270323T190000
DTEND;TZID=America/New_York:20270323T210000
RECURRENCE-ID;TZID=America/New_York:20270323T190000
UID:rehearsal@google.com
STATUS:CANCELLED
SUMMARY:Rehearsal
END:VEVENT
BEGIN:VEVENT
DTSTART:20270601T230000Z
DTEND:20270602T010000Z
UID:concert@google.com
DESCRIPTION:<b>Bring</b> a chair &amp\\; a friend
SUMMARY:Concert
LOCATION:https://meet.example.org/abc
END:VEVENT
END:VCALENDAR
"""
APPLE = """BEGIN:VCALENDAR
CALSCALE:GREGORIAN
PRODID:-//Apple Inc.//macOS 14.5//EN
VERSION:2.0
BEGIN:VEVENT
UID:11111111-2222
DTSTART;VALUE=DATE:20270503
DTEND;VALUE=DATE:20270505
SUMMARY:Fair
CATEGORIES:Markets,Food\\, Drink
URL;VALUE=URI:https://fair.example.org
GEO:48.0;7.8
LOCATION:Fairground\\n2 River Road\\nSpringfield
ATTACH;FMTTYPE=image/png:https://fair.example.org/a.png
BEGIN:VALARM
ACTION:DISPLAY
TRIGGER:-PT15M
END:VALARM
END:VEVENT
BEGIN:VEVENT
UID:33333333-4444
DTSTART:20270506T090000
DURATION:PT90M
SUMMARY:Floating
END:VEVENT
BEGIN:VEVENT
UID:55555555-6666
DTSTART:20270507T090000
SUMMARY:No end
END:VEVENT
END:VCALENDAR
"""


@pytest.fixture
def imports(mongodb_uri: str, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Imports:
    return Imports(mongodb_uri, store, tmp_path, capsys)


def calendar(*events: str, before: str = "") -> str:
    inside = "".join(f"BEGIN:VEVENT\n{event.strip()}\nEND:VEVENT\n" for event in events)
    return f"BEGIN:VCALENDAR\nVERSION:2.0\n{before}{inside}END:VCALENDAR\n"


async def shown(api: Api) -> dict[str, Any]:
    """All events, by title and start."""
    _, page = await api.get("/events", start_date="2020-01-01", end_date="2100-01-01", per_page=100)
    return {f"{event['title']} {event['start_date'][:10]}": event for event in page["events"]}


async def test_outlook(api: Api, imports: Imports) -> None:
    run = await imports.text("outlook.ics", OUTLOOK)
    assert (run.status, run.summary, run.said) == (0, {"events": (3, 0, 0, 0)}, [])
    found = await shown(api)
    council = found["Stadtrat, Sitzung 2027-07-05"]
    assert (council["timezone"], council["utc_start_date"]) == ("Europe/Berlin", "2027-07-05 17:00:00")
    assert council["venue"]["venue"] == "Rathaus"
    assert council["organizer"][0]["organizer"] == "Muster, Erika"
    assert council["organizer"][0]["email"] == "erika@example.org"
    assert council["description"] == "<p>With <b>markup</b>, too</p>"
    custom = found["In a zone that only the file knows 2027-07-05"]
    assert (custom["start_date"], custom["utc_start_date"]) == ("2027-07-05 10:00:00", "2027-07-05 08:00:00")
    assert custom["timezone"] == "UTC+2"
    days = found["Two days 2027-07-10"]
    assert (days["all_day"], days["end_date"], days["status"]) == (True, "2027-07-11 23:59:59", "private")
    assert days["timezone"] == "America/Los_Angeles"
    await agrees(api.store)


async def test_google(api: Api, imports: Imports) -> None:
    run = await imports.text("google.ics", GOOGLE)
    # A cancelled occurrence that was never imported is none that has to be removed.
    assert (run.status, run.summary) == (0, {"events": (4, 0, 1, 0)})
    found = await shown(api)
    assert sorted(found) == [
        "Concert 2027-06-01",
        "Rehearsal 2027-03-02",
        "Rehearsal 2027-03-30",
        "Rehearsal on Wednesday 2027-03-17",
    ]
    first, after = found["Rehearsal 2027-03-02"], found["Rehearsal 2027-03-30"]
    assert (first["utc_start_date"], after["utc_start_date"]) == (
        "2027-03-03 00:00:00",
        "2027-03-30 23:00:00",
    )
    assert (first["venue"]["venue"], first["venue"]["address"]) == ("Town Hall", "1 Main St, Springfield")
    assert first["organizer"][0]["email"] == ""
    moved = found["Rehearsal on Wednesday 2027-03-17"]
    assert (moved["start_date"], moved["venue"]) == ("2027-03-17 20:00:00", [])
    concert = found["Concert 2027-06-01"]
    assert (concert["timezone"], concert["start_date"]) == ("America/New_York", "2027-06-01 19:00:00")
    assert (concert["website"], concert["venue"]) == ("https://meet.example.org/abc", [])
    assert concert["description"] == "<b>Bring</b> a chair &amp; a friend"
    await agrees(api.store)


async def test_apple(api: Api, imports: Imports) -> None:
    run = await imports.text("apple.ics", APPLE.replace("\n", "\r\n"), timezone="Europe/Paris")
    assert (run.status, run.summary) == (0, {"events": (3, 0, 0, 0)})
    found = await shown(api)
    fair = found["Fair 2027-05-03"]
    assert (fair["all_day"], fair["end_date"]) == (True, "2027-05-04 23:59:59")
    assert [one["name"] for one in fair["categories"]] == ["Food, Drink", "Markets"]
    assert (fair["website"], fair["image"]["url"]) == (
        "https://fair.example.org",
        "https://fair.example.org/a.png",
    )
    place = fair["venue"]
    assert (place["venue"], place["address"]) == ("Fairground", "2 River Road, Springfield")
    assert (place["geo_lat"], place["geo_lng"]) == (48.0, 7.8)
    floating = found["Floating 2027-05-06"]
    assert (floating["timezone"], floating["start_date"]) == ("Europe/Paris", "2027-05-06 09:00:00")
    assert floating["end_date"] == "2027-05-06 10:30:00"
    open_end = found["No end 2027-05-07"]
    assert open_end["end_date"] == open_end["start_date"]


@pytest.mark.parametrize("text", [OUTLOOK, GOOGLE, APPLE], ids=["outlook", "google", "apple"])
async def test_a_second_run_changes_nothing(text: str, imports: Imports) -> None:
    first = (await imports.text("a.ics", text)).summary["events"]
    before = await imports.records("events")
    again = await imports.text("of another name.ics", text)
    assert again.summary == {"events": (0, 0, first[0] + first[2], 0)}
    assert await imports.records("events") == before


WEEKLY = """
UID:weekly
SUMMARY:Course
DTSTART:20270104T100000Z
DTEND:20270104T110000Z
RRULE:FREQ=WEEKLY;COUNT=4
"""


async def test_a_second_run_follows_a_series(api: Api, imports: Imports) -> None:
    await imports.text("a.ics", calendar(WEEKLY))
    assert sorted(await shown(api)) == [f"Course 2027-01-{day:02}" for day in (4, 11, 18, 25)]
    without_one = calendar(f"{WEEKLY}EXDATE:20270111T100000Z\n")
    assert (await imports.text("a.ics", without_one)).summary == {"events": (0, 1, 3, 0)}
    assert sorted(await shown(api)) == [f"Course 2027-01-{day:02}" for day in (4, 18, 25)]
    assert (await imports.text("a.ics", without_one)).summary == {"events": (0, 0, 3, 0)}
    assert (await imports.text("a.ics", calendar(WEEKLY))).summary == {"events": (0, 1, 3, 0)}
    on_tuesdays = calendar(WEEKLY.replace("20270104T", "20270105T"))
    assert (await imports.text("a.ics", on_tuesdays)).summary == {"events": (4, 4, 0, 0)}
    assert sorted(await shown(api)) == [f"Course 2027-01-{day:02}" for day in (5, 12, 19, 26)]
    once = calendar(WEEKLY.replace("RRULE:FREQ=WEEKLY;COUNT=4\n", ""))
    assert (await imports.text("a.ics", once)).summary == {"events": (1, 4, 0, 0)}
    assert sorted(await shown(api)) == ["Course 2027-01-04"]
    await agrees(api.store)


async def test_a_change_of_all_later_occurrences(api: Api, imports: Imports) -> None:
    later = """
UID:weekly
SUMMARY:Course
RECURRENCE-ID;RANGE=THISANDFUTURE:20270118T100000Z
DTSTART:20270119T120000Z
DTEND:20270119T130000Z
"""
    text = calendar(WEEKLY, later)
    assert (await imports.text("a.ics", text)).summary == {"events": (4, 0, 0, 0)}
    assert sorted(await shown(api)) == [f"Course 2027-01-{day:02}" for day in (4, 11, 19, 26)]
    assert (await imports.text("a.ics", text)).summary == {"events": (0, 0, 4, 0)}


async def test_occurrences_outside_the_window_are_left_alone(api: Api, imports: Imports) -> None:
    text = calendar(WEEKLY.replace(";COUNT=4", ""))
    january = {"since": date(2027, 1, 1), "until": date(2027, 2, 1)}
    february = {"since": date(2027, 2, 1), "until": date(2027, 3, 1)}
    assert (await imports.text("a.ics", text, **january)).summary == {"events": (4, 0, 0, 0)}
    assert (await imports.text("a.ics", text, **february)).summary == {"events": (4, 0, 0, 0)}
    assert len(await shown(api)) == 8


async def test_a_cancelled_event_goes_to_the_trash_and_comes_back(api: Api, imports: Imports) -> None:
    event = "UID:a\nSUMMARY:Talk\nDTSTART:20270104T100000Z\nDTEND:20270104T110000Z\n"
    await imports.text("a.ics", calendar(event))
    cancelled = calendar(f"{event}STATUS:CANCELLED\n")
    assert (await imports.text("a.ics", cancelled)).summary == {"events": (0, 1, 0, 0)}
    assert await shown(api) == {}
    assert (await imports.text("a.ics", cancelled)).summary == {"events": (0, 0, 1, 0)}
    assert (await imports.text("a.ics", calendar(event))).summary == {"events": (0, 1, 0, 0)}
    assert list(await shown(api)) == ["Talk 2027-01-04"]


GOOD = "UID:good\nSUMMARY:Good\nDTSTART:20270104T100000Z\n"


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ("UID:a\nDTSTART:20270104T100000Z\n", "line 3: Missing parameters: title."),
        ("UID:a\nSUMMARY:x\n", "line 3: DTSTART is missing"),
        ("UID:a\nSUMMARY:x\nDTSTART:2027-01-04\n", "line 3: DTSTART: "),
        (
            "UID:a\nSUMMARY:x\nDTSTART;TZID=Mars/Base:20270104T100000\n",
            "line 3: DTSTART: unknown time zone Mars/Base, and the file does not define it",
        ),
        (
            "UID:a\nSUMMARY:x\nDTSTART;TZID=Mars/Base:20270104T100000\nRRULE:FREQ=DAILY;COUNT=3\n",
            "line 3: DTSTART: unknown time zone Mars/Base, and the file does not define it",
        ),
        (
            "UID:a\nSUMMARY:x\nDTSTART:20270104T100000Z\nDTEND:20270103T100000Z\n",
            "line 3: end_date: Must not be before the start.",
        ),
        (
            "UID:a\nSUMMARY:x\nDTSTART:20270104T100000Z\nRRULE:FREQ=SECONDLY\n",
            "line 3: RRULE: repeats more than 24 times a day",
        ),
        (
            "UID:a\nSUMMARY:x\nDTSTART:20270104T100000Z\nRRULE:FREQ=HOURLY\n",
            "line 3: RRULE: more than 5000 occurrences until 2029-01-01; choose a nearer --until",
        ),
        (
            "UID:a\nSUMMARY:x\nDTSTART:20270104T100000Z\nRRULE:FREQ=DAILY;INTERVAL=0\n",
            "line 3: RRULE: INTERVAL must be at least 1",
        ),
        ("UID:a\nSUMMARY:x\nDTSTART:20270104T100000Z\nRRULE:FREQ=SOMETIMES\n", "line 3: RRULE: "),
        (
            "UID:a\nSUMMARY:x\nDTSTART:00010101T100000Z\nRRULE:FREQ=HOURLY\n",
            "line 3: RRULE: starts in 1, too early for a rule that repeats so often",
        ),
        (
            "UID:a\nSUMMARY:x\nDTSTART:00010101T100000Z\nRRULE:FREQ=YEARLY;BYHOUR=1,2;BYDAY=MO,TU,WE,TH,FR\n",
            "line 3: RRULE: starts in 1, too early for a rule that repeats so often",
        ),
        (
            "UID:a\nSUMMARY:x\nDTSTART:20270104T100000Z\nRRULE:FREQ=HOURLY;BYSETPOS=2\n",
            "line 3: RRULE: BYSETPOS chooses nothing with FREQ=HOURLY",
        ),
        *(
            (
                f"UID:a\nSUMMARY:x\nDTSTART:20270104T100000Z\nRRULE:FREQ={rule}\n",
                "line 3: RRULE: never occurs",
            )
            for rule in (
                "HOURLY;BYMONTH=2;BYMONTHDAY=30",
                "DAILY;BYMONTH=2;BYMONTHDAY=30;UNTIL=20280101T000000Z",
                "DAILY;INTERVAL=14;BYDAY=TU;COUNT=3",
                "YEARLY;BYYEARDAY=366;BYMONTH=1",
                "DAILY;BYSETPOS=2",
            )
        ),
        (
            "UID:a\nSUMMARY:x\nDTSTART:20270104T100000Z\nEND:VALARM\n",
            "line 3: END:VALARM on line 7 ends nothing",
        ),
        ("UID:a\nSUMMARY:x\nDTSTART:20270104T100000Z\nBEGIN:VALARM\n", "line 3: END:VALARM is missing"),
        (
            "UID:a\nSUMMARY:x\nDTSTART:20270104T100000Z\nBEGIN:VALARM\nEND:VTODO\nEND:VALARM\n",
            "line 3: END:VTODO on line 8 ends nothing that has begun",
        ),
    ],
)
async def test_one_bad_event_does_not_stop_the_others(event: str, said: str, imports: Imports) -> None:
    run = await imports.text("a.ics", calendar(event, GOOD))
    assert (run.status, run.summary) == (1, {"events": (1, 0, 0, 1)})
    assert run.said[0].startswith(said), run.said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (calendar("UID:a", GOOD).replace("END:VEVENT\n", "", 1), "line 3: END:VEVENT is missing"),
        (
            calendar(GOOD, "UID:a").replace("END:VEVENT\nEND:VCAL", "END:VCAL"),
            "line 8: END:VEVENT is missing",
        ),
        (
            calendar("UID:a", GOOD).replace("BEGIN:VEVENT\n", "", 1),
            "line 4: END:VEVENT on line 4 ends nothing that has begun",
        ),
        (f"BEGIN:VCALENDAR\nBEGIN:VEVENT\n{calendar(GOOD)}", "line 2: END:VEVENT is missing"),
    ],
)
async def test_an_event_that_does_not_begin_or_end(text: str, said: str, imports: Imports) -> None:
    run = await imports.text("a.ics", text)
    assert (run.status, run.summary, run.said) == (1, {"events": (1, 0, 0, 1)}, [said])


async def test_rare_rules_are_not_refused(api: Api, imports: Imports) -> None:
    leap_day = "UID:a\nSUMMARY:Leap\nDTSTART;VALUE=DATE:16040229\nRRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29\n"
    text = calendar(leap_day)
    assert (await imports.text("a.ics", text)).summary == {"events": (1, 0, 0, 0)}
    assert list(await shown(api)) == ["Leap 2028-02-29"]


async def test_what_looks_like_the_end_of_an_event(api: Api, imports: Imports) -> None:
    """A line that begins with a space continues the one before."""
    text = calendar(f"{GOOD}DESCRIPTION:a\n END:VEVENT\n BEGIN:VEVENT\n")
    assert (await imports.text("a.ics", text)).summary == {"events": (1, 0, 0, 0)}
    assert (await shown(api))["Good 2027-01-04"]["description"] == "aEND:VEVENTBEGIN:VEVENT"


async def test_a_zone_that_changes_every_second(imports: Imports) -> None:
    zone = OUTLOOK[OUTLOOK.index("BEGIN:VTIMEZONE") : OUTLOOK.index("BEGIN:VEVENT")]
    endless = zone.replace("FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10", "FREQ=SECONDLY")
    endless = endless.replace("Customized Time Zone", "Restless")
    event = "UID:a\nSUMMARY:x\nDTSTART;TZID=Restless:20270705T100000\n"
    run = await imports.text("a.ics", calendar(event, GOOD, before=endless))
    assert run.summary == {"events": (1, 0, 0, 1)}
    assert run.said == ["line 18: DTSTART: unknown time zone Restless, and the file does not define it"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (calendar(GOOD).removesuffix("END:VCALENDAR\n"), "is incomplete: END:VCALENDAR is missing"),
        ("BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VTODO\n", "is incomplete: END:VCALENDAR is missing"),
        ("<html>Not found</html>", "is not NDJSON, iCalendar or CSV"),
        ("%PDF-1.7\n", "is not NDJSON, iCalendar or CSV"),
        ("BEGIN:VCALENDAR\0\n", "is not NDJSON, iCalendar or CSV"),
    ],
)
async def test_a_file_that_is_no_calendar(text: str, said: str, imports: Imports) -> None:
    run = await imports.text("a.ics", text)
    assert run.status == 1
    assert len(run.said) == 1
    assert said in run.said[0]
    assert await imports.records("events") == []


async def test_at_an_address(imports: Imports, aiohttp_server: Any) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=GOOGLE.encode(), content_type="text/calendar")

    app = web.Application()
    app.router.add_get("/feed", answer)
    server = await aiohttp_server(app)
    assert (await imports.run(str(server.make_url("/feed")))).summary == {"events": (4, 0, 1, 0)}


async def test_what_kalends_writes_it_reads(api: Api, imports: Imports, mongodb_uri: str) -> None:
    await api.event("Plain; with, marks\\", description="<p>One &amp; two</p>\n<p>Three</p>")
    await api.event("Zoned", timezone="Europe/Berlin", venue={"venue": "Hall", "city": "Oslo", "zip": "1"})
    await api.event("Offset", timezone="UTC-3:30", categories=["A, B", "C"])
    await api.event(
        "Days", all_day=True, start_date="2027-03-27", end_date="2027-03-29", timezone="Asia/Tokyo"
    )
    await api.event(
        "Twice", timezone="Europe/Berlin", start_date="2027-10-31T01:30:00Z", end_date="2027-10-31 03:00:00"
    )
    await api.event(
        "People", organizer=[{"organizer": "Ada", "email": "a@example.org"}, {"organizer": "Bob"}]
    )
    await api.event("Trashed", status="trash")
    feed = str(api.client.make_url(f"{api.store.site.namespace}/events.ics"))
    async with copied(imports, mongodb_uri) as other:
        run = await other.run(feed)
        assert (run.status, run.said) == (0, [])
        assert run.summary["events"][0] == 6
        assert (await other.run(feed)).summary["events"][:2] == (0, 0)
        first, second = await imports.records("events"), await other.records("events")
    kept = [event for event in first if event["status"] != "trash"]
    assert sorted(map(texts_and_times, kept)) == sorted(map(texts_and_times, second))


def texts_and_times(event: dict[str, Any]) -> list[Any]:
    place = [[one.get(name) or "" for name in ("venue", "address", "zip", "city")] for one in event["venue"]]
    location = " ".join(" ".join(part).replace(",", "") for part in place).split()
    people = [(one["organizer"], one.get("email")) for one in event["organizer"]]
    texts = [event["title"], event.get("description") or "", [one["name"] for one in event["categories"]]]
    is_day = event["all_day"]
    times = [event["start"], event["end"]] if is_day else [event["start_utc"], event["end_utc"]]
    return [*texts, is_day, *times, location, people]


async def test_occurrences_on_the_first_day_of_the_window_stay(api: Api, imports: Imports) -> None:
    """In their own zone they are on the day before, and are not read any more."""
    evening = WEEKLY.replace("DTSTART:20270104T100000Z", "DTSTART;TZID=America/New_York:20270104T200000")
    text = calendar(evening.replace("DTEND:20270104T110000Z", "DTEND;TZID=America/New_York:20270104T210000"))
    await imports.text("a.ics", text, since=date(2027, 1, 1), until=date(2028, 1, 1))
    for day in (5, 12):
        run = await imports.text("a.ics", text, since=date(2027, 1, day), until=date(2028, 1, 1))
        assert run.summary["events"][:2] == (0, 0), day
    assert len(await shown(api)) == 4


@pytest.mark.parametrize(
    ("text", "html"),
    [
        (
            "Join <https://meet.example.org/x>\\nBring lunch",
            "Join &lt;https://meet.example.org/x&gt;<br>\nBring lunch",
        ),
        ("Ask Ann <ann@example.org>", "Ask Ann &lt;ann@example.org&gt;"),
        ("<p class='x'>Loud</p>", '<p class="x">Loud</p>'),
        ("One<br/>two", "One<br/>two"),
    ],
)
async def test_addresses_in_angle_brackets_are_no_markup(
    text: str, html: str, api: Api, imports: Imports
) -> None:
    event = f"UID:a\nSUMMARY:Talk\nDTSTART:20270104T100000Z\nDESCRIPTION:{text}\n"
    await imports.text("a.ics", calendar(event))
    (found,) = (await shown(api)).values()
    assert found["description"] == html


async def test_whole_days_in_utc_are_days_of_the_calendar(api: Api, imports: Imports) -> None:
    event = """
UID:a
SUMMARY:Fair
DTSTART:20270101T230000Z
DTEND:20270102T230000Z
X-MICROSOFT-CDO-ALLDAYEVENT:TRUE
"""
    await imports.text("a.ics", calendar(event), timezone="Europe/Berlin")
    (found,) = (await shown(api)).values()
    assert (found["start_date"][:10], found["end_date"][:10]) == ("2027-01-02", "2027-01-02")


@pytest.mark.parametrize(
    ("duration", "end"), [("PT6H", "2027-03-28 06:00:00"), ("P1D", "2027-03-28 23:00:00")]
)
async def test_hours_pass_also_when_the_clocks_change(
    duration: str, end: str, api: Api, imports: Imports
) -> None:
    event = f"UID:a\nSUMMARY:Night\nDTSTART;TZID=Europe/Berlin:20270327T230000\nDURATION:{duration}\n"
    await imports.text("a.ics", calendar(event))
    (found,) = (await shown(api)).values()
    assert found["end_date"] == end
