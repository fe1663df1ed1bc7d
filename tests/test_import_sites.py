"""Importing a site of the reference service: all five kinds, again and again, and sites that misbehave."""

from __future__ import annotations

import asyncio
import copy
import os
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from schemas.kinds.event_representation import LINKED
from service.imports import fetching
from service.imports.addresses import API_HEADER, address_of
from service.imports.options import ImportOptions
from service.imports.site import lists
from service.store import Store
from tests.checker import agrees, until
from tests.conftest import Api
from tests.import_runs import ROOT, Imports, ReferenceSite, copied
from tests.test_importing import REPOSITORY, Importer

PICTURE = {"url": "https://site.example.org/a.jpg", "id": "12", "extension": "jpg", "sizes": {"large": {}}}


def term(id: int, name: str, slug: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "name": name, "slug": slug, "description": "", "taxonomy": "x", "count": 1} | more


JAZZ = term(6, "Jazz &amp; Blues", "jazz", parent=2)
MUSIC = term(2, "Music", "music", parent=0)
OUTDOOR = term(7, "outdoor", "outdoor")
HALL = {
    "id": 11,
    "author": "3",
    "status": "publish",
    "date_utc": "2024-01-02 03:04:05",
    "venue": "Tom&#8217;s Hall",
    "slug": "toms-hall",
    "image": False,
    "address": "1 Main Street",
    "city": "Springfield",
    "zip": "62701",
    "website": "https://hall.example.org/?a=1&#038;b=2",
    "geo_lat": 48.0,
    "geo_lng": 7.8,
    "show_map": "1",
    "show_map_link": True,
}
CLUB = {
    "id": 12,
    "status": "publish",
    "organizer": "Club &amp; Co.",
    "slug": "club",
    "email": "a@example.org",
}
CONCERT = {
    "id": 21,
    "author": "3",
    "status": "publish",
    "date": "2024-05-01 10:00:00",
    "date_utc": "2024-05-01 08:00:00",
    "title": "Rock &#038; Roll &#8211; live",
    "description": "<p>Loud &amp; clear</p>\n",
    "excerpt": "<p>Loud</p>",
    "slug": "rock-and-roll",
    "image": PICTURE,
    "all_day": False,
    "start_date": "2027-06-01 19:30:00",
    "end_date": "2027-06-01 22:00:00",
    "utc_start_date": "2027-06-01 17:30:00",
    "utc_end_date": "2027-06-01 20:00:00",
    "timezone": "Europe/Berlin",
    "cost": "10&euro; &ndash; 20&euro;",
    "website": "",
    "show_map": True,
    "hide_from_listings": False,
    "sticky": False,
    "featured": True,
    "categories": [JAZZ],
    "tags": [OUTDOOR],
    "venue": HALL,
    "organizer": [CLUB],
}
OFFSET = CONCERT | {
    "id": 22,
    "title": "Far away",
    "slug": "far-away",
    "timezone": "UTC+2",
    "utc_start_date": "2027-06-01 19:30:00",
    "image": False,
    "venue": [],
    "organizer": [],
    "categories": [],
    "tags": [],
    "cost": "",
}
DRAFT = OFFSET | {
    "id": 23,
    "status": "draft",
    "title": "Not yet",
    "slug": "",
    "date_utc": "0000-00-00 00:00:00",
    "all_day": True,
    "start_date": "2027-07-01 00:00:00",
    "end_date": "2027-07-02 23:59:59",
}
SECOND_HOUR = OFFSET | {
    "id": 24,
    "title": "When the clock goes back",
    "slug": "clock",
    "timezone": "Europe/Berlin",
    "start_date": "2027-10-31 02:30:00",
    "end_date": "2027-10-31 03:30:00",
    "utc_start_date": "2027-10-31 01:30:00",
    "utc_end_date": "2027-10-31 02:30:00",
}
RECORDS = {
    "categories": [JAZZ, MUSIC],
    "tags": [OUTDOOR, term(8, "unused", "unused")],
    "venues": [HALL],
    "organizers": [CLUB],
    "events": [CONCERT, OFFSET, DRAFT, SECOND_HOUR],
}
ALL_NEW = {
    "events": (3, 0, 0, 0),
    "venues": (1, 0, 0, 0),
    "organizers": (1, 0, 0, 0),
    "categories": (2, 0, 0, 0),
    "tags": (2, 0, 0, 0),
}
SMALL_BATCHES = "from service.imports import batches\nbatches.MAX_BATCH_ITEMS = 5\n"
Serve = Callable[[ReferenceSite], Awaitable[str]]


@pytest.fixture
def imports(mongodb_uri: str, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Imports:
    return Imports(mongodb_uri, store, tmp_path, capsys)


@pytest.fixture
async def elsewhere(imports: Imports, mongodb_uri: str) -> AsyncIterator[Imports]:
    """Imports into another database, which is empty at first."""
    async with copied(imports, mongodb_uri) as other:
        yield other


@pytest.fixture
async def serve(aiohttp_server: Any) -> Serve:
    """Starts a site and returns its address."""

    async def start(found: ReferenceSite) -> str:
        server: TestServer = await aiohttp_server(found.app())
        return str(server.make_url("")).rstrip("/")

    return start


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "PAUSE_SECONDS", 0.01)


def reference(**more: Any) -> ReferenceSite:
    return ReferenceSite(copy.deepcopy(RECORDS), **more)


def same(summary: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    return {plural: (0, 0, new, 0) for plural, (new, *_) in summary.items()}


async def test_all_kinds_with_their_links(api: Api, imports: Imports, serve: Serve) -> None:
    run = await imports.run(await serve(reference()))
    assert (run.status, run.summary, run.said) == (0, ALL_NEW, [])
    _, page = await api.get("/events", start_date="2027-01-01", search="rock")
    (concert,) = page["events"]
    assert concert["title"] == "Rock & Roll – live"
    assert concert["description"] == "<p>Loud &amp; clear</p>\n"
    assert (concert["slug"], concert["featured"], concert["author"]) == ("rock-and-roll", True, 0)
    assert concert["image"]["url"] == PICTURE["url"]
    assert concert["date_utc"] == "2024-05-01 08:00:00"
    assert (concert["cost"], concert["cost_details"]["values"]) == ("10€ – 20€", ["10", "20"])
    assert (concert["start_date"], concert["utc_start_date"]) == (
        "2027-06-01 19:30:00",
        "2027-06-01 17:30:00",
    )
    assert (concert["venue"]["venue"], concert["venue"]["slug"]) == ("Tom’s Hall", "toms-hall")
    assert concert["venue"]["website"] == "https://hall.example.org/?a=1&b=2"
    assert concert["organizer"][0]["organizer"] == "Club & Co."
    (category,) = concert["categories"]
    _, parent = await api.get(f"/categories/{category['parent']}")
    assert (category["name"], parent["name"]) == ("Jazz & Blues", "Music")
    await agrees(api.store)


async def test_times_that_are_easily_got_wrong(api: Api, imports: Imports, serve: Serve) -> None:
    await imports.run(await serve(reference()))
    _, page = await api.get("/events", start_date="2027-01-01")
    found = {event["title"]: event for event in page["events"]}
    # The reference computes a wrong UTC time for offsets; its wall-clock time is right.
    far = found["Far away"]
    assert (far["timezone"], far["start_date"]) == ("UTC+2", "2027-06-01 19:30:00")
    assert far["utc_start_date"] == "2027-06-01 17:30:00"
    clock = found["When the clock goes back"]
    assert (clock["start_date"], clock["utc_start_date"]) == ("2027-10-31 02:30:00", "2027-10-31 01:30:00")


async def test_a_second_run_changes_what_has_changed(api: Api, imports: Imports, serve: Serve) -> None:
    found = reference()
    address = await serve(found)
    await imports.run(address)
    assert (await imports.run(address)).summary == same(ALL_NEW)
    _, page = await api.get("/events", start_date="2027-01-01", search="far")
    await api.patch(f"/events/{page['events'][0]['id']}", {"title": "Edited here"})
    found.records["events"][0]["title"] = "Renamed"
    found.records["events"][0]["venue"] = []
    found.records["categories"][1]["name"] = "All music"
    found.records["tags"].append(term(9, "new", "new"))
    run = await imports.run(address)
    assert run.summary == same(ALL_NEW) | {
        "events": (0, 1, 2, 0),
        "categories": (0, 1, 1, 0),
        "tags": (1, 0, 2, 0),
    }
    _, page = await api.get("/events", start_date="2027-01-01")
    assert {event["title"] for event in page["events"]} == {
        "Renamed",
        "Edited here",
        "When the clock goes back",
    }
    renamed = next(event for event in page["events"] if event["title"] == "Renamed")
    assert (renamed["venue"], renamed["slug"]) == ([], "rock-and-roll")
    await agrees(api.store)


async def test_what_was_deleted_here_stays_deleted(api: Api, imports: Imports, serve: Serve) -> None:
    found = reference()
    address = await serve(found)
    await imports.run(address)
    (concert,) = (await api.get("/events", start_date="2027-01-01", search="rock"))[1]["events"]
    await api.delete(f"/events/{concert['id']}")
    found.records["events"][0]["title"] = "Renamed"
    assert (await imports.run(address)).summary["events"] == (0, 0, 3, 0)
    assert (await api.get(f"/events/{concert['id']}"))[0] == 410


async def test_unpublished_records_need_credentials(api: Api, imports: Imports, serve: Serve) -> None:
    address = await serve(reference(user="ada:app lication"))
    assert (await imports.run(address)).summary["events"] == (3, 0, 0, 0)
    run = await imports.run(address, user="ada", password="app lication")
    assert run.summary["events"] == (1, 0, 3, 0)
    draft = await api.store.database["events"].find_one({"title": "Not yet"})
    assert draft is not None
    assert (draft["status"], draft["all_day"]) == ("draft", True)


async def test_a_linked_record_that_no_list_shows(imports: Imports, serve: Serve) -> None:
    found = reference()
    found.records["venues"] = []
    run = await imports.run(await serve(found))
    assert (run.status, run.summary["venues"]) == (0, (1, 0, 0, 0))
    event = await imports.store.database["events"].find_one({"slug": "rock-and-roll"})
    assert event is not None
    assert event["venue"][0]["venue"] == "Tom’s Hall"


async def test_terms_that_exist_already_are_not_doubled(api: Api, imports: Imports, serve: Serve) -> None:
    own = await api.made("categories", name="Music")
    run = await imports.run(await serve(reference()))
    assert run.summary["categories"] == (1, 1, 0, 0)
    found = {row["name"]: row for row in await imports.records("categories")}
    assert found["Jazz & Blues"]["parent"] == found["Music"]["_id"] == own["id"]


async def test_one_bad_record_does_not_stop_the_others(imports: Imports, serve: Serve) -> None:
    found = reference()
    found.records["events"][1] |= {"timezone": "Mars/Base", "end_date": "2027-05-01"}
    found.records["venues"][0]["website"] = "nope"
    found.records["organizers"] += [{"organizer": "Without an ID"}, {"id": []}, 7]
    run = await imports.run(await serve(found))
    assert run.status == 1
    assert run.summary == ALL_NEW | {
        "events": (1, 0, 0, 2),
        "venues": (0, 0, 0, 1),
        "organizers": (1, 0, 0, 3),
    }
    assert [line.partition(": ")[0] for line in run.said] == [
        "venues/11",
        *["organizers"] * 3,
        "events/22",
        "events/21",
    ]
    assert run.said[0] == "venues/11: website: Must be a URL that starts with http:// or https://."
    missing = "The record that it links to is missing in the source, or was refused."
    assert run.said[-1] == f"events/21: venue: {missing}"
    await agrees(imports.store)


async def test_a_dry_run_writes_nothing(imports: Imports, serve: Serve) -> None:
    run = await imports.run(await serve(reference()), dry_run=True)
    assert (run.status, run.summary) == (0, ALL_NEW)
    assert await imports.records("events") == await imports.records("venues") == []


async def test_a_busy_site_is_asked_again(imports: Imports, serve: Serve) -> None:
    busy = iter([429, 503, 500])

    async def answer(request: web.Request) -> web.Response | None:
        status = next(busy, 0)
        return web.Response(status=status, headers={"Retry-After": "0"}) if status else None

    run = await imports.run(await serve(reference(answer=answer)))
    assert (run.status, run.summary) == (0, ALL_NEW)


@pytest.mark.slow
async def test_killed_at_any_time_and_started_again(
    imports: Imports, serve: Serve, mongodb_uri: str, tmp_path: Path
) -> None:
    async def slowly(request: web.Request) -> None:
        await asyncio.sleep(0.02)

    found = reference(answer=slowly)
    found.records["events"] = [CONCERT | {"id": 100 + at, "slug": f"concert-{at}"} for at in range(60)]
    address, importer = await serve(found), Importer(mongodb_uri, imports.store, tmp_path)
    for more in (1, 15, 20):
        seen = await imports.store.database["events"].count_documents({})
        process = importer.started(address, code=SMALL_BATCHES)

        async def has_gone_on(least: int = seen + more) -> bool:
            return await imports.store.database["events"].count_documents({}) >= least

        await until(has_gone_on)
        process.kill()
        await asyncio.to_thread(process.communicate)
    run = await imports.run(address)
    new, _, known, _ = run.summary["events"]
    assert (run.status, new + known) == (0, 60)
    assert new < 30
    assert len(await imports.records("events")) == 60
    assert [len(await imports.records(plural)) for plural in ("venues", "categories", "tags")] == [1, 2, 2]
    await agrees(imports.store)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["http://example.org", "--user", "ada"], "--user needs an address with https"),
        (["http://", "--user", "ada"], "http:// is not an address"),
        (["https://example.org", "--since", "2027-01-01", "--until", "2026-01-01"], "--since must be before"),
        (
            ["https://example.org", "--map", "Titel=Event Nam"],
            "not 'Titel=Event Nam'; did you mean Event Name?",
        ),
        (["https://example.org", "--since", "soon"], "must be a date such as 2027-06-30, not 'soon'"),
        *(
            (
                ["a.csv", "--date-format", form],
                f"must be a format with day, month and year, each once, such as %d.%m.%Y, not {form!r}",
            )
            for form in ("%d.%d", "%", "%Q", "%d.%m", "tomorrow")
        ),
    ],
)
def test_mistakes_in_options(words: list[str], said: str) -> None:
    kept = {"PATH": os.environ["PATH"], "IMPORT_PASSWORD": "secret"}
    command = [sys.executable, "-m", "service", "import", *words]
    run = subprocess.run(command, cwd=REPOSITORY, env=kept, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert said in run.stderr.splitlines()[0]
    assert "secret" not in run.stderr


def test_a_password_is_never_guessed() -> None:
    command = [sys.executable, "-m", "service", "import", "https://example.org", "--user", "ada"]
    kept = {"PATH": os.environ["PATH"]}
    run = subprocess.run(
        command,
        cwd=REPOSITORY,
        env=kept,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (
        2,
        "kalends: --user needs a password: set the variable IMPORT_PASSWORD\n",
    )


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    try:
        while True:
            await response.write(b" " * 100_000)
    except ConnectionError:
        return response


async def silent(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(60)
    raise AssertionError


async def spaces(request: web.Request) -> web.StreamResponse:
    return web.Response(body=b" " * 10_000_000, content_type="application/json")


async def bomb(request: web.Request) -> web.StreamResponse:
    """Some hundred kilobytes that expand to 200 MB."""
    packed = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    body = b"".join(packed.compress(b" " * 1_000_000) for _ in range(200)) + packed.flush()
    return web.Response(body=body, headers={"Content-Encoding": "gzip", "Content-Type": "application/json"})


async def not_packed(request: web.Request) -> web.StreamResponse:
    return web.Response(body=b"{}", headers={"Content-Encoding": "gzip"})


async def html(request: web.Request) -> web.StreamResponse:
    return web.Response(text="<html>Maintenance</html>", content_type="text/html")


async def forbidden(request: web.Request) -> web.StreamResponse:
    return web.json_response({"code": "rest_forbidden", "message": "Sorry,\nno."}, status=403)


async def circle(request: web.Request) -> web.StreamResponse:
    raise web.HTTPFound(request.path_qs)


async def repeated(request: web.Request) -> web.StreamResponse:
    return web.json_response({"categories": [JAZZ, MUSIC], "total": 1000, "total_pages": 500})


async def growing(request: web.Request) -> web.StreamResponse:
    page = int(request.query["page"])
    found = [term(page, f"Category {page}", f"category-{page}", parent=0)]
    return web.json_response({"categories": found, "total": page, "total_pages": page + 1})


async def millions(request: web.Request) -> web.StreamResponse:
    return web.json_response({"categories": [JAZZ, MUSIC], "total": 10**9, "total_pages": 10**8})


async def number(request: web.Request) -> web.StreamResponse:
    return web.json_response(7)


async def other_json(request: web.Request) -> web.StreamResponse:
    return web.json_response({"categories": "none"})


LIST = f"{ROOT}/categories"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (endless, "sends more than 1 MB"),
        (silent, "does not answer in time"),
        (spaces, "sends more than 1 MB"),
        (bomb, "sends more than 1 MB"),
        (not_packed, "cannot be read: "),
        (html, "answers HTML instead of JSON"),
        (forbidden, "answers 403: Sorry, no."),
        (circle, "redirects more than 5 times"),
        (repeated, "/categories: page 2 repeats earlier records"),
        (growing, "/categories gets longer and longer while it is read"),
        (millions, "says that it has 100000000 pages; at most 100000 are read"),
        (number, "does not answer a JSON object"),
        (other_json, "is not a list of categories"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_a_site_that_misbehaves(
    answer: Any, said: str, imports: Imports, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    if answer is silent:
        monkeypatch.setattr(fetching, "SILENT_SECONDS", 0.1)
    monkeypatch.setattr(lists, "MAX_PAGE_BYTES", 1_000_000)

    async def answers(request: web.Request) -> web.StreamResponse | None:
        return await answer(request) if request.path == LIST else None

    run = await imports.run(await serve(reference(answer=answers)) + ROOT)
    assert run.status == 1
    assert len(run.said) == 1
    assert said in run.said[0], run.said
    await agrees(imports.store)


async def test_a_site_that_fails_later_has_given_complete_records(imports: Imports, serve: Serve) -> None:
    async def answers(request: web.Request) -> web.StreamResponse | None:
        is_late = request.path == f"{ROOT}/events" and request.query["page"] == "2"
        return await html(request) if is_late else None

    found = reference(answer=answers)
    address = await serve(found)
    run = await imports.run(address)
    assert (run.status, run.summary["events"]) == (1, (2, 0, 0, 0))
    await agrees(imports.store)
    found.answer = None
    assert (await imports.run(address)).summary == same(ALL_NEW) | {"events": (1, 0, 2, 0)}


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://127.0.0.1:1/", "cannot be reached: Connection refused"),
        ("http://nowhere.invalid/", "cannot be reached: "),
        ("{https}", "cannot be reached: no encrypted connection: "),
    ],
)
async def test_an_address_without_a_server(address: str, said: str, imports: Imports, serve: Serve) -> None:
    own = (await serve(reference())).replace("http:", "https:")
    run = await imports.run(address.format(https=own))
    assert run.status == 1
    assert len(run.said) == 1
    assert said in run.said[0]


async def test_what_is_no_site(imports: Imports, serve: Serve) -> None:
    async def answers(request: web.Request) -> web.StreamResponse | None:
        return await html(request)

    run = await imports.run(await serve(reference(answer=answers)))
    assert run.status == 1
    assert "is neither an iCalendar, CSV or NDJSON file nor a site" in run.said[0]


@pytest.mark.parametrize("path", ["/typo.ics", "/blog/"])
async def test_an_address_that_is_not_found_is_not_that_of_the_site(
    path: str, imports: Imports, serve: Serve
) -> None:
    run = await imports.run((await serve(reference())) + path)
    assert (run.status, len(run.said)) == (1, 1)
    assert run.said[0].endswith(f"{path} answers 404: there is no file and no site at this address")


@pytest.mark.parametrize("path", [f"{ROOT}/events", f"{ROOT}/events/12", "/?tribe_events_cat=jazz"])
async def test_an_address_of_a_part_of_a_site_is_not_that_of_the_site(
    path: str, imports: Imports, serve: Serve
) -> None:
    async def answer(request: web.Request) -> web.StreamResponse | None:
        return await html(request) if request.path_qs == path else None

    run = await imports.run((site := await serve(reference(answer=answer))) + path)
    assert run.status == 1
    assert run.said == [f"{site}{path} is only a part of a site; to import all of it: {site}{ROOT}"]
    assert (await imports.run(site + ROOT)).summary == ALL_NEW


async def test_the_address_of_the_interface_with_filters_is_not_that_of_the_site(
    imports: Imports, serve: Serve
) -> None:
    root = (await serve(reference())) + ROOT
    run = await imports.run(f"{root}?categories=jazz")
    assert run.status == 1
    assert run.said == [f"{root}?categories=jazz is only a part of a site; to import all of it: {root}"]


COMPARED = ("title", "description", "slug", "status", "start_utc", "end_utc", "timezone", "all_day", "cost")


def compared(event: dict[str, Any]) -> dict[str, Any]:
    names = {field: [copy[kind.name_field] for copy in event[field]] for field, kind in LINKED.items()}
    return {name: event.get(name) for name in (*COMPARED, "image", "website", "date_utc", "featured")} | names


async def test_the_interface_is_where_the_pages_say(imports: Imports, serve: Serve) -> None:
    found = reference()
    inner = found.app()

    async def page(request: web.Request) -> web.Response:
        root = str(request.url.with_path(f"/blog{ROOT}/"))
        return web.Response(text="<html>", content_type="text/html", headers={API_HEADER: root})

    app = web.Application()
    app.router.add_get("/calendar", page)
    app.add_subapp("/blog", inner)
    found.prefix = "/blog"
    server = TestServer(app)
    async with server:
        run = await imports.run(str(server.make_url("/calendar")))
    assert (run.status, run.summary) == (0, ALL_NEW)


async def test_the_pages_cannot_name_another_host(imports: Imports, serve: Serve) -> None:
    """It would be sent the credentials."""
    other = reference()
    root = f"{await serve(other)}{ROOT}/"

    async def answer(request: web.Request) -> web.StreamResponse | None:
        if request.path == "/":
            return web.Response(text="<html>", content_type="text/html", headers={API_HEADER: root})
        return None

    run = await imports.run(await serve(reference(answer=answer)), user="ada", password="secret")
    assert (run.status, run.summary, other.requests) == (0, ALL_NEW, [])


@pytest.mark.parametrize("path", ["/", "/?rest_route=/tribe/events/v1/"])
async def test_a_site_without_readable_links(path: str, imports: Imports, serve: Serve) -> None:
    found = reference()

    async def answer(request: web.Request) -> web.StreamResponse | None:
        if route := request.query.get("rest_route", "").removeprefix("/tribe/events/v1").strip("/"):
            return found.list(request, route)
        if "rest_route" in request.query:
            return web.json_response({"namespace": "tribe/events/v1"})
        return await html(request)

    found.answer = answer
    address = await serve(found)
    run = await imports.run(address + path)
    assert (run.status, run.summary) == (0, ALL_NEW)
    found.answer = None
    assert (await imports.run(address)).summary == same(ALL_NEW)


@pytest.mark.parametrize(
    ("source", "address"),
    [
        ("webcal://example.org/a.ics", "https://example.org/a.ics"),
        ("WEBCALS://example.org/a.ics", "https://example.org/a.ics"),
        ("http://example.org/#top", "http://example.org/"),
    ],
)
def test_addresses(source: str, address: str) -> None:
    assert str(address_of(ImportOptions(source))) == address


async def test_another_host_does_not_get_the_credentials(imports: Imports, serve: Serve) -> None:
    """Neither by a redirect nor by the header that names the interface."""
    received: list[str] = []

    async def listen(request: web.Request) -> web.Response:
        received.append(request.headers.get("Authorization", ""))
        return web.json_response({"namespace": "tribe/events/v1"})

    other = (await serve(reference(answer=listen))).replace("127.0.0.1", "localhost")

    async def refer(request: web.Request) -> web.Response:
        if request.path == "/":
            return web.Response(text="<html>", content_type="text/html", headers={API_HEADER: other + ROOT})
        raise web.HTTPFound(other + request.path_qs)

    run = await imports.run(await serve(reference(answer=refer)), user="ada", password="secret")
    assert run.status == 1
    assert received
    assert set(received) == {""}


@pytest.mark.parametrize("path", ["", ROOT])
async def test_a_redirected_password(path: str, imports: Imports, serve: Serve) -> None:
    other = (await serve(reference())).replace("127.0.0.1", "localhost")

    async def redirect(request: web.Request) -> web.Response:
        raise web.HTTPFound(other + request.path_qs)

    address = await serve(reference(answer=redirect))
    run = await imports.run(address + path, user="ada", password="secret")
    assert run.status == 1
    assert f"redirects to {other}" in run.said[0]
    assert (await imports.run(address + path)).summary == ALL_NEW


async def test_another_kalends(api: Api, imports: Imports, elsewhere: Imports, serve: Serve) -> None:
    """The records of a site go through a Kalends into another one, and are the same there."""
    await imports.run(await serve(reference()))
    await api.event("Made here", venue=[{"venue": "Yard"}, {"venue": "Barn"}], tags=["outdoor"], cost="12.50")
    address = str(api.client.make_url(""))
    run = await elsewhere.run(address)
    assert (run.status, run.summary) == (0, ALL_NEW | {"events": (4, 0, 0, 0), "venues": (3, 0, 0, 0)})
    first, second = [await one.records("events") for one in (imports, elsewhere)]
    assert sorted(map(compared, first), key=repr) == sorted(map(compared, second), key=repr)
    again = await elsewhere.run(f"{address.rstrip('/')}{api.store.site.namespace}/")
    assert again.summary == same(run.summary)
    await agrees(elsewhere.store)


@pytest.mark.parametrize("options", [{}, {"dry_run": True}])
async def test_the_service_of_the_same_database(options: dict[str, Any], api: Api, imports: Imports) -> None:
    await api.event("Made here")
    address = str(api.client.make_url("")).rstrip("/")
    run = await imports.run(address, **options)
    name = f"{address}{api.store.site.namespace}"
    assert (run.status, run.summary) == (1, {})
    assert run.said == [f"{name} shows this very database: there is nothing to import"]
    assert len(await imports.records("events")) == 1
