"""Importing CSV files: the columns of the reference's importer, mapped ones, and what Kalends writes."""

from __future__ import annotations

import csv
import shlex
from pathlib import Path
from typing import Any

import pytest

from service.commands.arguments import parser
from service.store import Store
from tests.checker import agrees
from tests.conftest import Api
from tests.import_runs import Imports, copied

EVENTS = """\
Event Name,Event Description,Event Venue Name,Event Organizer Name,Event Start Date,Event Start Time,\
Event End Date,Event End Time,All Day Event,Timezone,Event Category,Event Tags,Event Cost,\
Event Currency Symbol,Event Website,Feature Event
Concert,"<p>Loud, and
long</p>",Town Hall,"Ada, Bob",2027-06-01,7:30 PM,2027-06-01,22:00:00,FALSE,Europe/Berlin,"Music, Jazz",\
outdoor,12.50,€,https://example.org,TRUE
Fair,,,,2027-07-01,,2027-07-02,,TRUE,,,,,,,
Open end,,,,2027-08-01,9:00,,,,,,,Free,,,
"""


@pytest.fixture
def imports(mongodb_uri: str, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Imports:
    return Imports(mongodb_uri, store, tmp_path, capsys)


async def shown(api: Api) -> dict[str, Any]:
    _, page = await api.get("/events", start_date="2020-01-01", end_date="2100-01-01")
    return {event["title"]: event for event in page["events"]}


async def test_events(api: Api, imports: Imports) -> None:
    run = await imports.text("events.csv", EVENTS)
    assert (run.status, run.summary, run.said) == (0, {"events": (3, 0, 0, 0)}, [])
    found = await shown(api)
    concert = found["Concert"]
    assert concert["description"] == "<p>Loud, and\nlong</p>"
    assert (concert["start_date"], concert["end_date"]) == ("2027-06-01 19:30:00", "2027-06-01 22:00:00")
    assert (concert["timezone"], concert["cost"], concert["featured"]) == ("Europe/Berlin", "€12.50", True)
    assert concert["venue"]["venue"] == "Town Hall"
    assert [one["organizer"] for one in concert["organizer"]] == ["Ada", "Bob"]
    assert [one["name"] for one in concert["categories"]] == ["Jazz", "Music"]
    assert (found["Fair"]["all_day"], found["Fair"]["end_date"]) == (True, "2027-07-02 23:59:59")
    assert found["Open end"]["end_date"] == found["Open end"]["start_date"] == "2027-08-01 09:00:00"
    await agrees(api.store)


async def test_a_second_run_changes_what_has_changed(api: Api, imports: Imports) -> None:
    await imports.text("events.csv", EVENTS)
    assert (await imports.text("copy.csv", EVENTS)).summary == {"events": (0, 0, 3, 0)}
    changed = EVENTS.replace("12.50", "15").replace("Fair,", "Fête,")
    assert (await imports.text("events.csv", changed)).summary == {"events": (1, 1, 1, 0)}
    assert (await shown(api))["Concert"]["cost"] == "€15"


async def test_a_short_file_limits_no_other_reader(imports: Imports) -> None:
    """Python has one limit of cells for the whole process."""
    await imports.text("events.csv", EVENTS)
    assert next(csv.reader(["x" * 10_000])) == ["x" * 10_000]


async def test_equal_rows_are_different_events(imports: Imports) -> None:
    row = "Yoga,2027-06-01,10:00\n"
    text = f"Event Name,Event Start Date,Event Start Time\n{row}{row}"
    assert (await imports.text("a.csv", text)).summary == {"events": (2, 0, 0, 0)}
    assert (await imports.text("a.csv", text)).summary == {"events": (0, 0, 2, 0)}


async def test_other_columns_and_dates(api: Api, imports: Imports) -> None:
    text = "Titel;Datum;Beginn;Ort;Bemerkung\nSitzung;24.12.2027;19.30;Rathaus;intern\n"
    mapping = {
        "titel": "event name",
        "Datum": "Event Start Date",
        "Beginn": "Event Start Time",
        "Ort": "Event Venue Name",
    }
    run = await imports.text("a.csv", text.replace("19.30", "19:30"), mapping=mapping, date_format="%d.%m.%Y")
    assert (run.status, run.summary) == (0, {"events": (1, 0, 0, 0)})
    assert run.said == ["Columns that are not imported: Bemerkung"]
    found = (await shown(api))["Sitzung"]
    assert (found["start_date"], found["venue"]["venue"]) == ("2027-12-24 19:30:00", "Rathaus")


async def test_names_of_columns_in_the_importer(api: Api, imports: Imports) -> None:
    names = "EVENT NAME;EVENT START DATE;Event Time Zone;Event Sticky in Month View;"
    names += "Hide Event From Event Listings;Event Organizer Name(s) or ID(s);VENUE ADDRESS 2"
    run = await imports.text("a.csv", f"{names}\nFair;2027-06-01;Europe/Oslo;TRUE;;Ada;x\n")
    assert run.said == ["Columns that are not imported: VENUE ADDRESS 2"]
    found = (await shown(api))["Fair"]
    assert (found["timezone"], found["sticky"], found["organizer"][0]["organizer"]) == (
        "Europe/Oslo",
        True,
        "Ada",
    )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
async def test_encodings(encoding: str, imports: Imports, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("Organizer Name\tOrganizer Email\r\nMärta Øst\tm@example.org\r\n".encode(encoding))
    assert (await imports.run(str(path))).summary == {"organizers": (1, 0, 0, 0)}
    assert (await imports.records("organizers"))[0]["organizer"] == "Märta Øst"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("delimiter", ",;\t")
@pytest.mark.parametrize("first", ["", "sep={}"])
async def test_ends_of_lines_and_delimiters(
    end: str, delimiter: str, first: str, api: Api, imports: Imports
) -> None:
    """The delimiter is that of the first line, whatever the cells of the others contain."""
    cells = ["Event Name", "Event Start Date"], ["Song, dance, tea; and\tmore, much more", "2027-06-01"]
    rows = [delimiter.join(f'"{cell}"' for cell in row) for row in cells]
    lines = ([first.format(delimiter)] if first else []) + rows
    assert (await imports.text("a.csv", end.join([*lines, ""]))).summary == {"events": (1, 0, 0, 0)}
    assert list(await shown(api)) == ["Song, dance, tea; and\tmore, much more"]


HEAD = "Event Name,Event Start Date,Event Start Time\n"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (",2027-06-01,10:00", "title: Must not be blank."),
        ("x,,", "Missing parameters: start_date, end_date."),
        ("x,01/06/2027,10:00", "Event Start Date: '01/06/2027' is not a date such as 2027-06-01; name the"),
        ("x,2027-06-01,noon", "Event Start Time: 'noon' is not a time such as 19:30 or 7:30 PM"),
        ("x,2027-06-01,10:00,more", "has 4 cells, but there are 3 columns"),
        ('"Two"x,2027-06-01,10:00', "not valid CSV: ',' expected after '\"'"),
        ('"never ends,2027-06-01,10:00', "not valid CSV: unexpected end of data"),
        ("x\0y,2027-06-01,10:00", "a cell contains a NUL character"),
        ("x" * 1_000_001 + ",2027-06-01,10:00", "a cell has more than 1,000,000 characters"),
        ('"' + "x\n" * 500_001 + '",2027-06-01,10:00', "a cell has more than 1,000,000 characters"),
    ],
)
async def test_one_bad_row_does_not_stop_the_others(row: str, said: str, imports: Imports) -> None:
    run = await imports.text("a.csv", f"{HEAD}Good,2027-06-01,10:00\n\n{row}\nOther,2027-06-02,,,\n")
    assert (run.status, run.summary) == (1, {"events": (2, 0, 0, 1)})
    assert run.said[0].startswith(f"line 4: {said}"), run.said


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("Name,Date\nx,2027-06-01\n", {}, "with one of the columns Event Name, Venue Name, Organizer Name"),
        (f'"{HEAD}x,2027-06-01\n', {}, "line 1: not valid CSV: unexpected end of data"),
        ("Event Name\0\nx\n", {}, "is not NDJSON, iCalendar or CSV"),
        (HEAD, {"mapping": {"Titel": "Event Name"}}, "has no column 'Titel' for --map; it has Event Name"),
    ],
)
async def test_a_file_that_cannot_be_read(
    text: str, options: dict[str, Any], said: str, imports: Imports
) -> None:
    run = await imports.text("a.csv", text, **options)
    assert run.status == 1
    assert len(run.said) == 1
    assert said in run.said[0]


async def test_what_kalends_writes_it_reads(api: Api, imports: Imports, mongodb_uri: str) -> None:
    await api.event("=1+1", description="<p>a,b</p>", cost="12.50", tags=["one", "two"], featured=True)
    await api.event("Days", all_day=True, start_date="2027-03-27", end_date="2027-03-29", sticky=True)
    await api.event("Zoned", timezone="UTC-3:30", venue={"venue": "Hall"}, organizer={"organizer": "Ada"})
    await api.made("venues", venue="Yard", city="Oslo", geo_lat=1.5, geo_lng=-2, show_map=False, zip="007")
    async with copied(imports, mongodb_uri) as other:
        for plural in ("organizers", "venues", "events"):
            feed = str(api.client.make_url(f"{api.store.site.namespace}/{plural}.csv"))
            assert (await other.run(feed)).status == 0
            assert (await other.run(feed)).summary[plural][:2] == (0, 0)
            first, second = [await one.records(plural) for one in (imports, other)]
            assert sorted(map(content, first), key=repr) == sorted(map(content, second), key=repr)
        await agrees(other.store)


def content(record: dict[str, Any]) -> dict[str, Any]:
    """What a record says, without what is different in another database."""
    own = {"_id", "modified_utc", "date_utc", "events", "import_key", "import_hash", "tok", "text", "version"}
    linked = {
        name: [one.get("name") or one.get("venue") or one.get("organizer") for one in record[name]]
        for name in ("categories", "tags", "venue", "organizer")
        if isinstance(record.get(name), list)
    }
    return {name: value for name, value in record.items() if value and name not in own} | linked


async def test_the_example_of_the_readme(imports: Imports) -> None:
    readme = (Path(__file__).parent.parent / "README.md").read_text()
    example = readme.split("$ cat council.csv\n")[1].split("```")[0]
    text, _, shown = example.partition("$ kalends import council.csv ")
    command, _, *said = shown.splitlines()
    words = parser().parse_args(["import", "council.csv", *shlex.split(command)])
    run = await imports.text("council.csv", text, mapping=dict(words.map), date_format=words.date_format)
    assert run.said == said[:1]
    assert said[1:] == ["events: {} new, {} changed, {} same, {} refused".format(*run.summary["events"])]


async def test_the_name_of_a_venue_may_contain_commas(api: Api, imports: Imports) -> None:
    text = 'Event Name,Event Start Date,Event Venue Name\nTalk,2027-06-01,"Rathaus, Saal 2"\n'
    assert (await imports.text("events.csv", text)).summary == {"events": (1, 0, 0, 0)}
    assert (await shown(api))["Talk"]["venue"]["venue"] == "Rathaus, Saal 2"
