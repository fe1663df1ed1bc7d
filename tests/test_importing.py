"""Importing: the same records as by POST, many at once; killed at any moment, it goes on where it was."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from schemas import KINDS
from schemas.kinds.event_representation import LINKED
from service.imports.ndjson import lines
from service.progress import Progress
from service.store import Store
from tests.checker import agrees, until
from tests.conftest import Api
from tests.samples import SAMPLES, TIMES, named

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parent.parent
HALL = {"venue": "Grand Hall", "city": "Springfield", "geo_lat": 48.0, "geo_lng": 7.8}
Body = Mapping[str, Any]


def event(title: str = "Event", **more: Any) -> dict[str, Any]:
    return {"title": title, **TIMES, **more}


def written(bodies: Iterable[Body | str]) -> bytes:
    texts = (body if isinstance(body, str) else json.dumps(body) for body in bodies)
    return "".join(f"{text}\n" for text in texts).encode()


class Importer:
    """Runs the command in a process of its own, as an operator does."""

    def __init__(self, uri: str, store: Store, directory: Path) -> None:
        self.store = store
        self.file = directory / "records.ndjson"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("KALENDS_")}
        own = {"MONGODB_URI": uri, "DATABASE": store.database.name, "LOG_LEVEL": "warning"}
        self.environment = kept | {f"KALENDS_{name}": value for name, value in own.items()}

    def started(self, *words: str, code: str = "", **options: Any) -> subprocess.Popen[str]:
        program = [sys.executable, "-c", code + RUN] if code else [sys.executable, "-m", "service"]
        return subprocess.Popen(
            [*program, "import", *words],
            cwd=REPOSITORY,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    async def run(self, bodies: Iterable[Body | str], *words: str, code: str = "") -> tuple[int, str, str]:
        """Exit status, output, errors."""
        self.file.write_bytes(written(bodies))
        process = self.started(str(self.file), *words, code=code)
        output, errors = await asyncio.to_thread(process.communicate)
        return process.returncode, output.strip(), self.without_place(errors)

    def without_place(self, errors: str) -> str:
        """What is said beside the line that names the database."""
        lines = errors.splitlines(keepends=True)
        named = f"Importing into database {self.store.database.name} of MongoDB at /"
        others = [line for line in lines if not line.startswith(named)]
        assert len(others) == len(lines) - 1, errors
        return "".join(others)


RUN = "\nfrom service.__main__ import main\nmain()\n"
SMALL = "\nfrom service.imports.ndjson import lines\nlines.MAX_BATCH_LINES = 10\n"
"""Batches of ten lines, so that a short file has several."""


@pytest.fixture
def importer(mongodb_uri: str, store: Store, tmp_path: Path) -> Importer:
    return Importer(mongodb_uri, store, tmp_path)


async def count(store: Store, plural: str = "events") -> int:
    return await store.database[plural].count_documents({})


OWN = {"id", "slug", "url", "rest_url", "global_id", "global_id_lineage", "urls"}
MOMENTS = {"date", "date_utc", "modified", "modified_utc"}


def alike(shown: Any, kept: set[str] = frozenset()) -> Any:  # type: ignore[assignment]
    """A representation without what differs from record to record."""
    if isinstance(shown, list):
        return [alike(one, kept) for one in shown]
    if not isinstance(shown, dict):
        return shown
    return {name: alike(value, kept) for name, value in shown.items() if name not in (OWN | MOMENTS) - kept}


BODIES: list[dict[str, Any]] = [
    event(),
    event("Zoned", timezone="Europe/Berlin", cost="€5 – €12", website="https://example.org", featured=True),
    event("All day", all_day=True, timezone="UTC+2", description="<p>Straße &amp; Öl</p>", excerpt="short"),
    event(
        "Flags", sticky="1", hide_from_listings=True, show_map=True, ticketed="yes", image="https://e.org/a"
    ),
    event("Terms", categories=["Concerts", "Jazz & Blues"], tags="one, two"),
    event("Venue", venue=HALL, organizer=[{"organizer": "Club"}, {"organizer": "Band", "phone": "1"}]),
    event("Two venues", venue=[HALL, {"venue": "Other"}]),
    event("Known", categories=["{category}"], tags=["{tag}"], venue="{venue}", organizer=["{organizer}"]),
    event("Draft", status="draft", author=7),
    event("Later", date="2031-01-01 00:00:00"),
    event("Past", date_utc="2020-01-01 00:00:00"),
    event("Draft hall", venue={"venue": "Draft hall", "status": "draft"}),
    event("Locked", password="secret", venue=HALL, tags=["locked"]),
    event("Named", slug="my-own-slug"),
    event("Part", post_parent="{event}"),
    event("日本"),
]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body["title"])
async def test_an_imported_event_is_the_same_as_a_posted_one(
    body: dict[str, Any], api: Api, importer: Importer
) -> None:
    made = {
        kind.name: await api.made(kind.plural, **SAMPLES[kind.name] | {kind.name_field: f"Known {kind.name}"})
        for kind in KINDS
    }

    def filled(value: Any) -> Any:
        if isinstance(value, list):
            return [filled(one) for one in value]
        return made[value[1:-1]]["id"] if isinstance(value, str) and value.startswith("{") else value

    body = {name: filled(value) for name, value in body.items()}
    posted = await api.made("events", **body)
    assert await importer.run([body]) == (0, "events: 1 new, 0 changed, 0 same, 0 refused", "")
    newest = await api.store.database["events"].find_one({}, sort=[("_id", -1)])
    assert newest is not None
    password = {"password": body["password"]} if "password" in body else {}
    status, imported = await api.get(f"/events/{newest['_id']}", **password)
    assert status == 200
    kept = MOMENTS if "date" in body or "date_utc" in body else set()
    imported.pop("json_ld")
    assert alike(imported, kept - {"modified", "modified_utc"}) == alike(
        posted, kept - {"modified", "modified_utc"}
    )
    for field in LINKED:
        # What the first one made, the second one finds, unless it was not public.
        if "Draft" not in json.dumps(body):
            assert imported[field] == posted[field]
    await agrees(api.store)


@pytest.mark.parametrize("kind", KINDS, ids=named)
async def test_every_kind_is_imported(kind: Any, api: Api, importer: Importer) -> None:
    bodies = [SAMPLES[kind.name] | {kind.name_field: f"Name {at}"} for at in range(3)]
    expected = (0, f"{kind.plural}: 3 new, 0 changed, 0 same, 0 refused", "")
    assert await importer.run(bodies, "--kind", kind.plural, "--author", "5") == expected
    posted = await api.made(kind.plural, **bodies[0] | {kind.name_field: "Name 3"})
    stored = await api.store.database[kind.plural].find_one({"slug": "name-0"})
    assert stored is not None
    _, imported = await api.get(f"/{kind.plural}/{stored['_id']}")
    imported.pop("json_ld", None)
    assert alike(imported) | {kind.name_field: "", "author": 0} == alike(posted) | {
        kind.name_field: "",
        "author": 0,
    }
    assert imported.get("author", 5) == 5
    await agrees(api.store)


async def test_categories_are_hung_below_others_and_refused_twice(api: Api, importer: Importer) -> None:
    top = await api.made("categories", name="Music")
    low = await api.made("categories", name="Jazz", parent=top["id"])
    bodies: list[Body] = [
        {"name": "Bebop", "parent": low["id"]},
        {"name": "BEBOP", "parent": low["id"]},
        {"name": "Bebop"},
        {"name": "music"},
        {"name": "Lost", "parent": 999},
        {"name": "Bebop", "slug": "other-bebop"},
    ]
    status, output, errors = await importer.run(bodies, "--kind", "categories")
    assert (status, output) == (1, "categories: 3 new, 0 changed, 0 same, 3 refused")
    exists = "A term with this name already exists; to create another one, send a different slug."
    assert errors.splitlines() == [
        f"line 2: {exists}",
        f"line 4: {exists}",
        "line 5: parent: Category not found.",
    ]
    found = await api.store.database["categories"].find_one({"slug": "bebop"})
    assert found is not None
    assert found["ancestors"] == [top["id"], low["id"]]
    await agrees(api.store)


BAD = [
    ('{"title": ', "The body is not JSON"),
    ("[1, 2]", "The body must be a JSON object."),
    ('"title"', "The body must be a JSON object."),
    (b"\xff\xfe".decode("latin-1"), "The body is not JSON"),
    ({"title": "No dates"}, "Missing parameters: start_date, end_date."),
    (event(start_date="soon"), "start_date: "),
    (event(start_date="2027-06-02 10:00:00"), "end_date: "),
    (event(cost="x" * 5000), "cost: "),
    (event(timezone="Mars/Base", website="nope"), "timezone: "),
    (event(venue=99), "venue: Venue 99 not found."),
    (event(venue={"venue": "Never made"}, organizer=99), "organizer: Organizer 99 not found."),
    (event(venue={"city": "Nameless"}), "venue: Invalid data for a new record: venue."),
    (event(post_parent=99), "post_parent: Must be the ID of another event."),
    (event(description="x" * 1_100_000), "The body is too large."),
]


async def test_bad_lines_are_told_and_the_others_are_imported(api: Api, importer: Importer) -> None:
    bodies: list[Any] = ["\ufeff" + json.dumps(event("First")), "", "   "]
    for at, (bad, _) in enumerate(BAD):
        bodies += [bad, event(f"Good {at}")]
    status, output, errors = await importer.run(bodies)
    assert (status, output) == (1, f"events: {len(BAD) + 1} new, 0 changed, 0 same, {len(BAD)} refused"), (
        errors
    )
    told = errors.splitlines()
    for at, (bad, message) in enumerate(BAD):
        said = [line for line in told if line.startswith(f"line {4 + 2 * at}: ")]
        assert said[0].startswith(f"line {4 + 2 * at}: {message}"), (bad, said)
    assert len([line for line in told if line.startswith("line 20: ")]) == 2
    assert await count(api.store, "venues") == 0
    await agrees(api.store)


@pytest.mark.parametrize("bad", [body for body, _ in BAD if isinstance(body, dict)][:-1])
async def test_a_line_is_refused_in_the_words_of_the_api(bad: Body, api: Api, importer: Importer) -> None:
    status, answer = await api.post("/events", bad)
    assert status == 400
    params = answer["data"]["params"]
    said = (
        [f"{name}: {text}" for name, text in params.items()]
        if isinstance(params, dict)
        else [answer["message"]]
    )
    _, _, errors = await importer.run([bad])
    assert errors.splitlines() == [f"line 1: {text}" for text in said]


async def test_unknown_fields_are_refused_unless_they_are_to_be_ignored(api: Api, importer: Importer) -> None:
    shown = await api.event("Shown", tags=["red"])
    bodies = [event(catgories=["x"], venue={"venue": "Hall", "ctiy": "Oslo"}, cost="5"), shown]
    status, output, errors = await importer.run(bodies)
    assert (status, output) == (1, "events: 1 new, 0 changed, 0 same, 1 refused")
    said = "Unknown field; --ignore-unknown-fields imports the record without it."
    assert errors.splitlines() == [f"line 1: {name}: {said}" for name in ("catgories", "venue.ctiy")]
    status, output, errors = await importer.run(bodies, "--ignore-unknown-fields")
    assert (status, output) == (0, "events: 1 new, 0 changed, 1 same, 0 refused"), errors
    assert (await api.get("/events"))[1]["events"][-1]["venue"]["venue"] == "Hall"


async def test_a_dry_run_writes_nothing(importer: Importer) -> None:
    bodies = [event("Good"), event(start_date="2027-06-02 10:00:00"), "{"]
    importer.file.write_bytes(written(bodies))
    process = importer.started(str(importer.file), "--dry-run")
    output, errors = await asyncio.to_thread(process.communicate)
    assert (process.returncode, output) == (1, "events: 1 new, 0 changed, 0 same, 2 refused\n")
    place, *said = errors.splitlines()
    assert place.startswith("Dry run, nothing is written to database ")
    assert [line.partition(":")[0] for line in said] == ["line 2", "line 3"]
    assert await count(importer.store) == 0


async def test_a_line_is_imported_once(importer: Importer) -> None:
    """Also from another file, in another order, beside new lines, and after a bad one is put right."""
    first: list[Body | str] = [event("A"), event("B"), event("B"), "{", event("C")]
    assert (await importer.run(first))[:2] == (1, "events: 4 new, 0 changed, 0 same, 1 refused")
    assert (await importer.run(first))[:2] == (1, "events: 0 new, 0 changed, 4 same, 1 refused")
    mended = [event("B"), event("New"), event("A"), event("B"), event("D"), event("C")]
    assert (await importer.run(mended))[:2] == (0, "events: 2 new, 0 changed, 4 same, 0 refused")
    titles = [row["title"] async for row in importer.store.database["events"].find().sort("title", 1)]
    assert titles == ["A", "B", "B", "C", "D", "New"]
    await agrees(importer.store)


async def test_standard_input(importer: Importer) -> None:
    process = importer.started("-", stdin=subprocess.PIPE)
    sent = written([event("One"), event("Two")]).decode().rstrip("\n")
    output, errors = await asyncio.to_thread(process.communicate, sent)
    assert (process.returncode, output) == (0, "events: 2 new, 0 changed, 0 same, 0 refused\n")
    assert importer.without_place(errors) == ""
    assert await count(importer.store) == 2


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["missing.ndjson"], 2, "kalends: cannot read missing.ndjson: No such file or directory"),
        (["tests"], 2, "kalends: cannot read tests: Is a directory"),
        (["--kind", "people", "x"], 2, "invalid choice: 'people'"),
    ],
)
async def test_what_cannot_be_imported(words: list[str], status: int, said: str, importer: Importer) -> None:
    process = importer.started(*words)
    _, errors = await asyncio.to_thread(process.communicate)
    assert process.returncode == status
    assert said in errors


async def test_equal_titles_and_wished_slugs(api: Api, importer: Importer) -> None:
    await api.event("Chess Evening")
    await api.event("Chess Evening 4")
    bodies = [event("Chess Evening") for _ in range(40)]
    bodies += [
        event("Chess Evening 7"),
        event("Other", slug="chess-evening"),
        event("x" * 300),
        event("x" * 300),
    ]
    assert (await importer.run(bodies, code=SMALL))[0] == 0
    slugs = {row["slug"] async for row in api.store.database["events"].find()}
    assert {"chess-evening", *(f"chess-evening-{number}" for number in range(2, 40))} <= slugs
    assert len(slugs) == 46
    await agrees(api.store)


async def test_new_terms_and_places_are_shared_by_many_lines(api: Api, importer: Importer) -> None:
    bodies = [
        event(
            f"Event {at}",
            categories=["Concerts", "concerts" if at % 2 else "CONCERTS"],
            tags=[f"tag {at % 3}"],
            venue=HALL if at % 2 else {"venue": "Grand Hall"},
            organizer=[{"organizer": "Club"}, {"organizer": "Club", "phone": str(at % 2)}],
            end_date=f"2027-06-{2 + at % 20:02} 12:00:00",
            status="draft" if at % 5 == 0 else "publish",
        )
        for at in range(1, 36)
    ]
    assert (await importer.run(bodies, code=SMALL))[0] == 0
    assert [await count(api.store, plural) for plural in ("categories", "tags", "venues")] == [1, 3, 1]
    assert await count(api.store, "organizers") == 3
    await agrees(api.store)


KILLER = (
    SMALL
    + """
import os, signal
from pymongo import monitoring

class Killer(monitoring.CommandListener):
    left = {times}
    def look(self, when, event, *place):
        if (when, event.command_name, *place) == {point}:
            Killer.left -= 1
            if Killer.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
    def started(self, event): self.look("before", event, str(event.command.get(event.command_name)))
    def succeeded(self, event): self.look("after", event)
    def failed(self, event): pass

monitoring.register(Killer())
"""
)
"""Ends its process at a certain command."""
POINTS = [
    (("before", "find", "events"), 2),
    (("before", "findAndModify", "counters"), 1),
    (("before", "insert", "words"), 1),
    (("before", "insert", "categories"), 1),
    (("before", "insert", "tags"), 1),
    (("before", "insert", "tags"), 2),
    (("before", "insert", "organizers"), 3),
    (("before", "insert", "events"), 1),
    (("before", "insert", "events"), 3),
    (("after", "insert"), 4),
    (("after", "insert"), 7),
    (("before", "update", "tags"), 1),
    (("before", "findAndModify", "meta"), 1),
]


def many(number: int) -> list[Body]:
    return [
        event(
            f"Event {at % 7}",
            description=f"word{at} shared",
            categories=["Concerts", f"Category {at % 4}"],
            tags=[f"tag {at // 10}"],
            venue=HALL | {"city": f"City {at % 3}"},
            organizer={"organizer": f"Club {at // 5}"},
        )
        for at in range(number)
    ]


@pytest.mark.parametrize(("point", "times"), POINTS)
async def test_killed_at_a_command_and_started_again(
    point: tuple[str, ...], times: int, importer: Importer
) -> None:
    bodies = many(35)
    status, output, _ = await importer.run(bodies, code=KILLER.format(point=point, times=times))
    assert (status, output) == (-signal.SIGKILL, "")
    assert await importer.run([event("Of another file")]) == (
        0,
        "events: 1 new, 0 changed, 0 same, 0 refused",
        "",
    )
    before = await count(importer.store) - 1  # not earlier: a command that was sent is still executed
    expected = (0, f"events: {35 - before} new, 0 changed, {before} same, 0 refused", "")
    assert await importer.run(bodies) == expected
    assert await count(importer.store) == 36
    await agrees(importer.store)


async def test_killed_at_any_time_and_started_again(importer: Importer) -> None:
    """Several times on the way through one file, whatever is under way at that moment."""
    bodies = many(400)
    importer.file.write_bytes(written(bodies))
    reached = 0
    for _ in range(4):
        process = importer.started(str(importer.file), code=SMALL)

        async def has_gone_on(seen: int = reached, process: Any = process) -> bool:
            return process.poll() is not None or await count(importer.store) > seen + 30

        await until(has_gone_on)
        process.kill()
        await asyncio.to_thread(process.communicate)
        reached = await count(importer.store)
    assert reached < 400
    status, output, errors = await importer.run(bodies)
    assert (status, errors) == (0, "")
    assert output.endswith(" same, 0 refused")
    assert await count(importer.store) == 400
    await agrees(importer.store)


INTERRUPTIBLE = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
"""Programs that a shell has started in the background ignore SIGINT, and so do those that they start."""


async def test_stopped_by_its_operator(importer: Importer) -> None:
    bodies = many(400)
    importer.file.write_bytes(written(bodies))
    process = importer.started(str(importer.file), code=INTERRUPTIBLE + SMALL)

    async def has_begun() -> bool:
        return process.poll() is not None or await count(importer.store) > 0

    await until(has_begun)
    process.send_signal(signal.SIGINT)
    _, errors = await asyncio.to_thread(process.communicate)
    assert (process.returncode, errors.splitlines()[-1]) == (130, "kalends: stopped")
    assert "Traceback" not in errors
    assert (await importer.run(bodies))[0] == 0
    assert await count(importer.store) == 400
    await agrees(importer.store)


async def test_two_imports_of_one_file_at_once(importer: Importer) -> None:
    bodies = many(60)
    importer.file.write_bytes(written(bodies))
    processes = [importer.started(str(importer.file), code=SMALL) for _ in range(2)]
    ended = [await asyncio.to_thread(process.communicate) for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert [importer.without_place(errors) for _, errors in ended] == ["", ""]
    assert sum(int(output.split()[1]) for output, _ in ended) == 60
    assert await count(importer.store) == 60
    await agrees(importer.store)


async def test_beside_a_service_that_writes_the_same_names(api: Api, importer: Importer) -> None:
    """Equal titles, terms and venues; venues are renamed and terms deleted while they are being linked."""
    bodies = many(200)
    hall = await api.made("venues", **HALL | {"city": "City 0"})
    importer.file.write_bytes(written(bodies))
    process = importer.started(str(importer.file), code=SMALL)
    posted = 0
    while process.poll() is None:
        body = bodies[posted % 7]
        _, made = await asyncio.gather(
            api.patch(f"/venues/{hall['id']}", {"description": f"number {posted}"}),
            api.event(**{"title": body["title"], "tags": body["tags"], "venue": body["venue"]}),
        )
        posted += 1
        if posted % 10 == 0 and made["tags"]:
            await api.delete(f"/tags/{made['tags'][0]['id']}")
    output, errors = await asyncio.to_thread(process.communicate)
    assert (process.returncode, output) == (0, "events: 200 new, 0 changed, 0 same, 0 refused\n"), errors
    assert await count(api.store) == 200 + posted
    await agrees(api.store)


def test_lines_are_cut_into_batches_by_number_and_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MAX_BATCH_LINES", 3)
    monkeypatch.setattr(lines, "MAX_BATCH_BYTES", 100)
    file = tmp_path / "file"
    texts = [b"a", b"b", b"c", b"", b"x" * 90, b"y" * 20, b"z" * 300, b"last"]
    file.write_bytes(b"\r\n".join(texts))
    with file.open("rb") as opened:
        found = list(lines.read_batches(opened, KINDS[0], 200))
    shown = [[(line.number, line.text) for line in batch.lines] for batch in found]
    assert shown == [
        [(1, b"a"), (2, b"b"), (3, b"c")],
        [(5, b"x" * 90), (6, b"y" * 20)],
        [(7, None)],
        [(8, b"last")],
    ]
    assert found[-1].end == file.stat().st_size
    fingerprints = [line.fingerprint for batch in found for line in batch.lines]
    assert len(set(fingerprints)) == len(fingerprints)


async def test_the_example_of_the_readme(importer: Importer) -> None:
    readme = (REPOSITORY / "README.md").read_text()
    example = readme.split("$ cat events.ndjson\n")[1].split("```")[0]
    texts, shown = example.split("$ kalends import events.ndjson\n")
    place, _, shown = shown.partition("\n")
    assert place.startswith("Importing into database kalends of the embedded MongoDB in /")
    status, output, errors = await importer.run(texts.splitlines())
    assert (status, errors + output + "\n") == (1, shown)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "shown"),
    [
        (Terminal(), "\r\x1b[K" + "█" * 15 + "·" * 15 + "  50%  20 records, 4 a second, 0:05 left"),
        (io.StringIO(), " 50%  20 records, 4 a second, 0:05 left\n"),
    ],
    ids=["terminal", "other"],
)
def test_progress(stream: io.StringIO, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([100.0, 105.0, 105.01])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    progress = Progress(stream, 1000)
    progress.show(500, 20)
    progress.show(500, 20)
    monkeypatch.undo()
    assert stream.getvalue() == shown
    progress.print_line("line 3: wrong")
    assert stream.getvalue().endswith("line 3: wrong\n")


async def test_a_link_means_the_record_that_fits_best_whatever_was_linked_before(
    api: Api, importer: Importer
) -> None:
    first = await api.made("tags", name="First")
    digits = await api.made("tags", name="Digits", slug=str(first["id"]))
    named_jazz = await api.made("tags", name="jazz", slug="old-music")
    jazz = await api.made("tags", name="Newer", slug="jazz")
    bodies = [event(f"Before {n}", tags=["Digits", named_jazz["id"]]) for n in range(30)]
    bodies += [event("After", tags=[digits["slug"], "jazz"])]
    assert await importer.run(bodies, code=SMALL) == (0, "events: 31 new, 0 changed, 0 same, 0 refused", "")
    (found,) = (await api.get("/events", search="After"))[1]["events"]
    assert {tag["id"] for tag in found["tags"]} == {first["id"], jazz["id"]}
