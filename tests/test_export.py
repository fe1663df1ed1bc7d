"""`kalends export`: what it writes is imported with the same ids and links, and nothing is doubled."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from service.exporting import export_records
from service.store import Store
from tests.checker import agrees
from tests.conftest import Api
from tests.import_runs import Imports, copied
from tests.test_importing import REPOSITORY, Importer

DERIVED = {
    "modified_utc",
    "has_own_time",
    "import_key",
    "import_hash",
    "last_change",
    "version",
    "claim",
    "trashed_from",
    "tok",
}
"""What an imported record has of its own."""


@pytest.fixture
def imports(mongodb_uri: str, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Imports:
    return Imports(mongodb_uri, store, tmp_path, capsys)


async def exported(imports: Imports, format: str = "ndjson") -> Path:
    imports.capsys.readouterr()
    assert await export_records(imports.settings, format) == 0
    path = imports.directory / f"export.{format}"
    path.write_text(imports.capsys.readouterr().out, newline="")
    return path


async def fill(api: Api) -> None:
    """Records with everything that an export has to carry."""
    music = await api.made("categories", name="Music")
    late = await api.made("categories", name="Late parent")
    jazz = await api.made("categories", name="Jazz", parent=music["id"])
    await api.patch(f"/categories/{music['id']}", {"parent": late["id"]})
    hall = await api.made("venues", venue="Hall", geo_lat=1, geo_lng=2, image="https://example.org/a.png")
    gone = await api.made("venues", venue="Gone", status="draft", show_map=False)
    await api.delete(f"/venues/{gone['id']}")
    part = await api.event("Part", venue=[hall["id"]], categories=[jazz["id"]], tags=["a", "b"], author=7)
    whole = await api.event("Whole", organizer=[{"organizer": "Ada"}, {"organizer": "Bob"}], cost="10–20 €")
    await api.patch(f"/events/{part['id']}", {"post_parent": whole["id"]})
    await api.event("Protected", password="secret", description="<p>Hidden</p>")
    await api.event("Hidden", hide_from_listings=True, image=5, timezone="UTC+5:30", all_day=True)
    await api.event(
        "Twice", timezone="Europe/Berlin", start_date="2027-10-31T01:30:00Z", end_date="2027-10-31 03:00:00"
    )
    await api.event("Later", date="2031-01-01 00:00:00", status="publish")
    trashed = await api.event("Trashed")
    await api.delete(f"/events/{trashed['id']}")


async def contents(imports: Imports) -> dict[str, list[dict[str, Any]]]:
    plurals = ("categories", "tags", "venues", "organizers", "events")
    return {plural: [plain(row) for row in await imports.records(plural)] for plural in plurals}


def plain(value: Any) -> Any:
    if isinstance(value, list):
        return [plain(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: plain(one)
        for name, one in value.items()
        if name not in DERIVED | {"events"} and one not in (None, "")
    }


async def test_an_empty_database_becomes_a_copy(api: Api, imports: Imports, mongodb_uri: str) -> None:
    await fill(api)
    path = str(await exported(imports))
    async with copied(imports, mongodb_uri) as other:
        run = await other.run(path)
        assert (run.status, run.said) == (0, [])
        assert await contents(other) == await contents(imports)
        assert await other.store.instance() == await api.store.instance()
        again = await other.run(path)
        assert again.summary == {plural: (0, 0, new, 0) for plural, (new, *_) in run.summary.items()}
        created = await other.store.ids.next("post")
        assert created > max(row["_id"] for row in await other.records("events"))
        await agrees(other.store)


async def test_a_protected_event_stays_protected(api: Api, imports: Imports, mongodb_uri: str) -> None:
    event = await api.event("Protected", password="secret")
    path = str(await exported(imports))
    await api.store.database["events"].delete_many({})
    assert (await imports.run(path)).summary["events"] == (1, 0, 0, 0)
    assert (await api.get(f"/events/{event['id']}"))[0] == 403
    assert (await api.get(f"/events/{event['id']}", password="secret"))[0] == 200


async def test_where_it_comes_from_nothing_is_doubled(api: Api, imports: Imports) -> None:
    await fill(api)
    path = str(await exported(imports))
    before = await contents(imports)
    assert {new for new, *_ in (await imports.run(path, dry_run=True)).summary.values()} == {0}
    run = await imports.run(path)
    assert {counts[:2] for counts in run.summary.values()} == {(0, 0)}
    assert await contents(imports) == before
    event = next(row for row in before["events"] if row["title"] == "Whole")
    await api.patch(f"/events/{event['_id']}", {"title": "Renamed"})
    await api.store.database["events"].delete_one({"title": "Hidden"})
    assert (await imports.run(path)).summary["events"] == (1, 1, len(before["events"]) - 2, 0)
    assert await contents(imports) == before
    await agrees(api.store)


async def test_a_copy_has_records_of_its_own(api: Api, imports: Imports, mongodb_uri: str) -> None:
    """The same calendar to those who have subscribed, but its records are not those of the original."""
    await api.event("Of the original")
    path = str(await exported(imports))
    async with copied(imports, mongodb_uri) as other:
        await other.run(path)
        line = '{"title": "Of the copy", "start_date": "2027-01-01", "end_date": "2027-01-01"}\n'
        await other.text("own.ndjson", line)
        await other.store.database["events"].update_one(
            {"title": "Of the copy"}, {"$unset": {"import_key": 1}}
        )
        await api.event("New in the original")
        assert (await other.run(str(await exported(imports)))).summary == {"events": (1, 0, 1, 0)}
        again = await other.run(str(await exported(other)))
        assert again.summary == {"events": (0, 0, 3, 0)}
        titles = [row["title"] for row in await other.records("events")]
    assert titles == ["Of the original", "Of the copy", "New in the original"]


async def test_ids_that_are_taken_are_replaced_with_their_links(
    api: Api, imports: Imports, mongodb_uri: str
) -> None:
    async with copied(imports, mongodb_uri) as other:
        await other.text("own.ndjson", '{"venue": "Own"}\n', kind="venues")
        own = (await other.records("venues"))[0]["_id"]
        await api.store.database["counters"].update_one(
            {"_id": "post"}, {"$set": {"n": own - 1}}, upsert=True
        )
        event = await api.event("Show", venue={"venue": "Taken"})
        assert own in (event["id"], event["venue"]["id"])
        path = str(await exported(imports))
        run = await other.run(path)
        assert (run.status, run.summary) == (0, {"events": (1, 0, 0, 0), "venues": (1, 0, 0, 0)})
        (copy,) = await other.records("events")
        assert copy["venue"][0]["venue"] == "Taken"
        assert {row["venue"] for row in await other.records("venues")} == {"Own", "Taken"}
        assert (await other.run(path)).summary == {"events": (0, 0, 1, 0), "venues": (0, 0, 1, 0)}
        await agrees(other.store)


async def test_ids_that_a_running_service_has_reserved_are_replaced(api: Api, imports: Imports) -> None:
    """It would give them to other records. The rest is kept, also by an import that was interrupted."""
    last = (await api.event("Own"))["id"]
    header = json.dumps({"kalends_export": str(uuid4()), "instance": str(uuid4())}, separators=(",", ":"))
    halls = [f'{{"kind": "venues", "id": {last + n}, "venue": "Hall {n}"}}' for n in (1, 100, 2000, 50, 1500)]
    first, every = "\n".join((header, *halls[:3])), "\n".join((header, *halls))
    assert (await imports.text("a.ndjson", first)).summary == {"venues": (3, 0, 0, 0)}
    made = [(await api.event(f"Event {n}"))["id"] for n in range(40)]
    assert (await imports.text("a.ndjson", every)).summary == {"venues": (2, 0, 3, 0)}
    venues = {row["venue"]: row["_id"] - last for row in await imports.records("venues")}
    assert [venues.pop(f"Hall {n}") for n in (50, 100, 1500, 2000)] == [50, 100, 1500, 2000]
    assert venues["Hall 1"] > 2000
    assert not {id - last for id in made} & {50, 100, 1500, 2000, venues["Hall 1"]}
    await agrees(api.store)


async def test_what_was_imported_is_known_in_the_copy(imports: Imports, mongodb_uri: str) -> None:
    event = "BEGIN:VEVENT\nUID:a\nSUMMARY:Talk\nDTSTART:20270104T100000Z\nEND:VEVENT\n"
    calendar = f"BEGIN:VCALENDAR\n{event}END:VCALENDAR\n"
    line = '{"title": "Line", "start_date": "2027-01-01", "end_date": "2027-01-01"}\n'
    await imports.text("a.ics", calendar)
    await imports.text("a.ndjson", line)
    path = str(await exported(imports))
    async with copied(imports, mongodb_uri) as other:
        assert (await other.run(path)).summary == {"events": (2, 0, 0, 0)}
        assert (await other.text("a.ics", calendar)).summary == {"events": (0, 0, 1, 0)}
        await other.text("a.ndjson", line)
        assert len(await other.records("events")) == 2


async def test_icalendar_contains_what_is_public(api: Api, imports: Imports) -> None:
    await fill(api)
    await api.event("Draft", status="draft")
    text = (await exported(imports, "ics")).read_text()
    titles = {line.removeprefix("SUMMARY:") for line in text.splitlines() if line.startswith("SUMMARY:")}
    assert titles == {"Part", "Whole", "Protected", "Hidden", "Twice"}
    assert "<p>Hidden</p>" not in text
    assert text.startswith("BEGIN:VCALENDAR")
    assert text.endswith("END:VCALENDAR\n") or text.endswith("END:VCALENDAR\r\n")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"kind": "events", "id": 5', "not a record with its kind, ID and links, as an export has them"),
        ("[1]", "not a record with its kind, ID and links, as an export has them"),
        ('{"kind": "people", "id": 5}', "not a record with its kind, ID and links, as an export has them"),
        *(
            (f'{{"kind": "events", "id": {id}, "title": "x"}}', "not a record with its kind, ID and links")
            for id in ("0", "-1", "true", '"5"', "1.5", "null", str(2**53 + 1), str(10**30))
        ),
        *(
            (f'{{"kind": "events", "id": 5, "password_hash": {hash}}}', "not a record with its kind, ID")
            for hash in ('"secret"', '""', "7", "true", "[]")
        ),
        ('{"kind": "events", "id": 5, "title": "x"}', "Missing parameters: start_date, end_date."),
        ('{"kind": "events", "id": 5, "venue": [9], "title": "x"}', "venue: The record that it links to is"),
    ],
)
async def test_one_bad_line_does_not_stop_the_others(
    line: str, said: str, api: Api, imports: Imports
) -> None:
    await api.event("Good")
    path = await exported(imports)
    await api.store.database["events"].delete_many({})
    header, good = path.read_text().splitlines()
    run = await imports.text("bad.ndjson", "\n".join((header, line, good)))
    assert (run.status, run.summary) == (1, {"events": (1, 0, 0, 1)})
    assert run.said[0].startswith(f"line 2: {said}")


async def test_the_largest_id_is_kept(imports: Imports) -> None:
    header = json.dumps({"kalends_export": str(uuid4()), "instance": str(uuid4())}, separators=(",", ":"))
    record = f'{{"kind": "tags", "id": {2**53}, "name": "Last"}}'
    assert (await imports.text("a.ndjson", f"{header}\n{record}\n")).summary == {"tags": (1, 0, 0, 0)}
    assert [tag["_id"] for tag in await imports.records("tags")] == [2**53]


async def test_a_byte_order_mark_before_an_export(api: Api, imports: Imports, mongodb_uri: str) -> None:
    await api.event("Marked")
    text = (await exported(imports)).read_text()
    async with copied(imports, mongodb_uri) as other:
        run = await other.text("a.ndjson", f"\ufeff{text}")
        assert (run.status, run.summary, run.said) == (0, {"events": (1, 0, 0, 0)}, [])


async def test_a_header_that_is_none(imports: Imports) -> None:
    run = await imports.text("a.ndjson", '{"kalends_export":"nonsense"}\n')
    assert run.status == 1
    assert "line 1: not the first line of an export" in run.said[0]


async def test_a_reader_that_stops(api: Api, importer: Importer) -> None:
    """As in `kalends export | head`: no traceback."""
    for at in range(3):
        await api.event(f"Event {at}", description="<p>long</p>" * 9000)
    command = f"{sys.executable} -m service export | head -c 10"
    run = subprocess.run(
        command,
        shell=True,
        cwd=REPOSITORY,
        env=importer.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in run.stderr
    assert run.stdout == '{"kalends_'


@pytest.mark.parametrize("buffering", ["", "1"])
@pytest.mark.parametrize(
    "words", [["export"], ["export", "--format=ics"], ["token", "create", "--role=viewer", "--name=Me"]]
)
async def test_a_full_disk(words: list[str], buffering: str, importer: Importer) -> None:
    """What does not fit may be noticed at once, or when the rest of a buffer is written at the end."""
    with Path("/dev/full").open("wb") as full:
        run = subprocess.run(
            [sys.executable, "-m", "service", *words],
            cwd=REPOSITORY,
            env=importer.environment | {"PYTHONUNBUFFERED": buffering},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    said, failure = run.stderr.splitlines()
    assert said.startswith(("Exporting ", "Token 1 created in "))
    assert (run.returncode, failure) == (1, "kalends: cannot write the output: No space left on device")


@pytest.fixture
def importer(mongodb_uri: str, store: Store, tmp_path: Path) -> Importer:
    return Importer(mongodb_uri, store, tmp_path)


async def test_a_password_that_was_changed_or_removed_is_changed_in_the_copy(
    api: Api, imports: Imports, mongodb_uri: str
) -> None:
    event = await api.event("Party")
    path = f"/events/{event['id']}"
    async with copied(imports, mongodb_uri) as other:
        await other.run(str(await exported(imports)))
        for change in ({"new_password": "secret"}, {"password": "secret", "new_password": ""}):
            assert (await api.patch(path, change))[0] == 200
            assert (await other.run(str(await exported(imports)))).summary["events"] == (0, 1, 0, 0)
            (source,), (copy,) = await imports.records("events"), await other.records("events")
            assert (copy["password"], copy["locked"]) == (source["password"], source["locked"])
        await agrees(other.store)


async def test_what_was_removed_is_removed_in_the_copy(api: Api, imports: Imports, mongodb_uri: str) -> None:
    music, first = await api.made("categories", name="Music"), await api.event("First")
    jazz = await api.made("categories", name="Jazz", parent=music["id"])
    second = await api.event("Second", post_parent=first["id"], image="https://example.org/a.png")
    async with copied(imports, mongodb_uri) as other:
        await other.run(str(await exported(imports)))
        assert (await api.patch(f"/categories/{jazz['id']}", {"parent": 0}))[0] == 200
        assert (await api.patch(f"/events/{second['id']}", {"post_parent": 0, "image": ""}))[0] == 200
        assert (await other.run(str(await exported(imports)))).said == []
        assert await contents(other) == await contents(imports)
        await agrees(other.store)


async def test_parents_with_higher_ids_that_had_been_imported(
    api: Api, imports: Imports, mongodb_uri: str
) -> None:
    low, high = [await api.made("categories", name=name) for name in ("Low", "High")]
    await api.event("Event", categories=[low["id"]])
    assert (await api.patch(f"/categories/{low['id']}", {"parent": high["id"]}))[0] == 200
    for number, one in enumerate((low, high)):
        key = {"$set": {"import_key": bytes([number]) * 16}}
        await api.store.database["categories"].update_one({"_id": one["id"]}, key)
    async with copied(imports, mongodb_uri) as other:
        run = await other.run(str(await exported(imports)))
        assert (run.status, run.said) == (0, [])
        assert await contents(other) == await contents(imports)


async def test_links_to_what_was_deleted_are_not_exported(api: Api, imports: Imports) -> None:
    """A process has died between the deletion of a tag and that of its copies in events."""
    event = await api.event("Event", tags=["kept", "gone"])
    database = api.store.database
    await api.store.log.update()  # compares the copies once more
    await database["tags"].delete_one({"name": "gone"})
    rows = [json.loads(line) for line in (await exported(imports)).read_text().splitlines()]
    (kept,) = [row["id"] for row in rows if row.get("kind") == "tags"]
    assert {row["id"]: row["tags"] for row in rows if row.get("kind") == "events"} == {event["id"]: [kept]}


async def test_events_that_are_each_others_parents_are_exported(api: Api, imports: Imports) -> None:
    ids = [(await api.event(f"Event {number}"))["id"] for number in range(2)]
    for id, other in (ids, ids[::-1]):
        assert (await api.patch(f"/events/{id}", {"post_parent": other}))[0] == 200
    rows = [json.loads(line) for line in (await exported(imports)).read_text().splitlines()]
    found = [(row["id"], row["post_parent"]) for row in rows if row.get("kind") == "events"]
    assert sorted(found, key=lambda row: len(row[1])) == [(ids[0], []), (ids[1], [ids[0]])]
