"""Access: who sees, finds and writes what; passwords; tokens. The access table tells what is expected."""

from __future__ import annotations

import asyncio
import base64
import csv
import io
import itertools
import json
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from config.logs import configure
from schemas import EVENT, ORGANIZER, VENUE
from schemas.caller import Role
from schemas.formats import formats_of
from schemas.site import Site
from service.background import BackgroundTasks
from service.mongo.id_blocks import Ids
from service.store import Store
from service.tokens import Tokens, digest
from tests import access_table as table
from tests.access_table import CALLERS, OK, PASSWORD, POSTS, STATUSES, TERMS, Made, code_of
from tests.checker import until
from tests.conftest import Api, MakeApi
from tests.test_faults import running

Roles = dict[str, Api]
every_caller = pytest.mark.parametrize("caller", CALLERS)
every_post = pytest.mark.parametrize("kind", POSTS)
WRITERS = [caller for caller in CALLERS if caller not in ("public", "viewer")]
OWNERS = ("contributor", "author", "admin")


# The table: every caller, kind, status, owner, protection and route


@dataclass
class Matrix:
    """A record for every combination, none linked to another, and two public ones that all events link to."""

    records: list[Made]
    links: dict[str, list[int]]

    def of(self, kind: str) -> list[Made]:
        return [record for record in self.records if record.kind == kind]

    def for_caller(self, kind: str, caller: str) -> list[Made]:
        """The records worth a try: who owns one matters to those only who may own one."""
        owners = OWNERS if caller in ("contributor", "author") else ("author",)
        return [record for record in self.of(kind) if record.owner in owners]


@pytest.fixture
async def matrix(roles: Roles, store: Store) -> Matrix:
    async def build() -> Matrix:
        admin, ids = roles["admin"], await table.role_ids(store)
        linked = {
            "venue": (await admin.made("venues", venue="Hall", status="publish"))["id"],
            "organizer": (await admin.made("organizers", organizer="Club"))["id"],
            "categories": (await admin.made("categories", name="Kind"))["id"],
            "tags": (await admin.made("tags", name="Word"))["id"],
        }
        wanted = []
        for kind in POSTS:
            cases = itertools.product(STATUSES, OWNERS, (False, True) if kind == "event" else (False,))
            for number, (status, owner, locked) in enumerate(cases):
                name = f"Matrix {kind} {status} {owner} {'locked' if locked else 'open'}"
                wanted.append(Made(kind, number, status, owner, locked, texts={table.NAMES[kind]: name}))
        made = (table.make(admin, ids, one, **(linked if one.kind == "event" else {})) for one in wanted)
        records = await table.together(made)
        return Matrix(records, {name: [id] for name, id in linked.items()})

    built: Matrix = await table.once(store, "matrix", build)
    return built


async def attempts(
    api: Api, store: Store, record: Made, method: str, body: Any, expected: tuple[int, str]
) -> list[Any]:
    """Tries a request by id and by slug. What differs from what is expected, answer or database, is told."""
    collection, wrong = store.database[record.plural], []
    before = await collection.find_one({"_id": record.id})
    assert before
    answers = []
    for path in record.paths:
        status, answer = await api.send(method, path, body)
        answers.append((status, code_of(answer)))
        after = before if method == "GET" else await collection.find_one({"_id": record.id})
        if expected != OK and after != before:
            wrong.append((record, path, "the record was changed"))
        if method != "GET" and expected == OK and after == before:
            wrong.append((record, path, "the record was not changed"))
        if after != before:
            await collection.replace_one({"_id": record.id}, before)
    if answers != [expected, expected]:
        wrong.append((record, method, "answered", answers, "expected", expected))
    return wrong


@every_caller
async def test_items_by_id_and_by_slug(roles: Roles, matrix: Matrix, store: Store, caller: str) -> None:
    async def tries(record: Made) -> list[Any]:
        wrong: list[Any] = []
        for method, body, expected in (
            ("GET", None, table.read(caller, record)),
            ("PATCH", {"description": f"by {caller}"}, table.update(caller, record)),
            ("DELETE", None, table.delete(caller, record)),
        ):
            wrong += await attempts(roles[caller], store, record, method, body, expected)
        return wrong

    found = await asyncio.gather(
        *(tries(record) for kind in POSTS for record in matrix.for_caller(kind, caller))
    )
    wrong = [one for many in found for one in many]
    assert not wrong, "\n".join(map(str, wrong))


@every_caller
async def test_terms_are_read_by_all_and_written_by_some(roles: Roles, caller: str) -> None:
    for plural in TERMS.values():
        await check_terms(roles, caller, plural)


async def check_terms(roles: Roles, caller: str, plural: str) -> None:
    api = roles[caller]
    term = await roles["admin"].made(plural, name="Term")
    path, expected = f"/{plural}/{term['id']}", table.role_writes(caller, terms=True)
    assert (await api.get(path))[0] == 200
    assert await api.ids(plural, hide_empty="0") == [term["id"]]
    status, body = await api.post(f"/{plural}", {"name": "New"})
    assert (status, code_of(body)) == ((201, "") if expected == OK else expected)
    for method in ("POST", "PUT", "PATCH"):
        status, body = await api.send(method, path, {"description": method})
        assert (status, code_of(body)) == expected
    status, body = await api.delete(path)
    assert (status, code_of(body)) == expected
    status, body = await roles["public"].get(path)
    assert (status, body.get("description")) == (404, None) if expected == OK else (200, None)
    status, body = await api.patch(f"/{plural}/by-slug/term", {"description": "x"})
    assert (status, code_of(body)) == (404, "rest_no_route")


async def answer_ids(api: Api, plural: str, **query: Any) -> list[int] | tuple[int, str]:
    """The ids of a list in their order, or the refusal; the total must be the number of ids."""
    status, body = await api.get(f"/{plural}", per_page="100", **query)
    if status != 200:
        return status, code_of(body)
    ids = sorted(record["id"] for record in body[plural])
    assert (body["total"], api.headers["X-TEC-Total"]) == (len(ids), str(len(ids)))
    return ids


@every_caller
async def test_lists_show_what_may_be_seen(roles: Roles, matrix: Matrix, caller: str) -> None:
    for kind in POSTS:
        await check_lists(roles[caller], matrix, caller, kind)


async def check_lists(api: Api, matrix: Matrix, caller: str, kind: str) -> None:
    records = matrix.of(kind)
    search = {"search": "matrix"}  # leaves out what the others link to
    plain = [record for record in records if not record.locked]
    default = {} if kind == "event" else search
    assert await answer_ids(api, POSTS[kind], **default) == table.listed(caller, records)
    assert await answer_ids(api, POSTS[kind], **search) == table.listed(caller, plain)
    for statuses in [*((status,) for status in STATUSES), ("publish", "draft"), ("trash", "private")]:
        query = {"status": ",".join(statuses)}
        expected = table.listed(caller, records, statuses)
        assert await answer_ids(api, POSTS[kind], **default, **query) == expected, query
        expected = table.listed(caller, plain, statuses)
        assert await answer_ids(api, POSTS[kind], **search, **query) == expected, query
    for record in matrix.for_caller(kind, caller):
        name = f'"{record.texts[table.NAMES[kind]].lower()}"'
        expected = [record.id] if table.finds(caller, record) else []
        assert await answer_ids(api, POSTS[kind], search=name) == expected, record
        if kind == "event":
            expected = [record.id] if table.lists(caller, record) else []
            assert await answer_ids(api, "events", include=str(record.id)) == expected, record
    if kind == "event":
        every = ",".join(str(record.id) for record in records)
        assert await answer_ids(api, "events", include=every) == table.listed(caller, records)
        trash = table.listed(caller, records, ["trash"])
        assert await answer_ids(api, "events", include=every, status="trash") == trash


@every_caller
async def test_links_of_an_event_are_for_its_readers(roles: Roles, matrix: Matrix, caller: str) -> None:
    for event in matrix.for_caller("event", caller):
        for field, plural, names in (
            ("categories", "categories", ("event", "post")),
            ("tags", "tags", ("event", "post")),
            ("venue", "venues", ("event",)),
            ("organizer", "organizers", ("event",)),
        ):
            for name in names:
                expected = table.linked(caller, event, matrix.links[field])
                found = await answer_ids(roles[caller], plural, **{name: str(event.id)})
                assert found == expected, (event, plural, name)


# No text that is not public appears anywhere


every_reader = pytest.mark.parametrize("caller", [caller for caller in CALLERS if caller != "admin"])
"""An admin sees what an editor sees: the tests above tell."""


FIELDS = {
    "event": ("title", "description", "excerpt", "cost", "website", "image"),
    "venue": (
        "venue", "description", "address", "city", "country", "province", "state", "stateprovince", "zip",
        "phone", "website", "image",
    ),
    "organizer": ("organizer", "description", "phone", "email", "website", "image"),
}  # fmt: skip
SEARCHED = {
    "event": ("title", "description", "excerpt"),
    "venue": FIELDS["venue"][:-1],
    "organizer": FIELDS["organizer"][:-1],
}
WRAPPED = {"website": "https://example.org/{}", "image": "https://example.org/{}", "email": "{}@example.org"}
CANARY = re.compile(r"canary-([a-z]+)-([0-9]+)-([a-z]+)", re.IGNORECASE)


def canary(kind: str, number: int, field: str) -> str:
    return f"canary-{kind}-{number}-{field}-{kind[0]}{number}{field}7f3a"


def place(number: int) -> tuple[int, int]:
    """Where a venue is: far from all others."""
    return number * 6 - 30, number * 12 - 60


def marked(kind: str) -> list[Made]:
    """What is to be made of a kind: a record for every case, a canary in each of its texts."""
    cases = itertools.product(STATUSES, ("author", "admin"), (False, True) if kind == "event" else (False,))
    return [
        Made(kind, number, status, owner, locked, texts={
            name: WRAPPED.get(name, "{}").format(canary(kind, number, name)) for name in FIELDS[kind]
        })
        for number, (status, owner, locked) in enumerate(cases)
    ]  # fmt: skip


@dataclass
class Aviary:
    """Records of every kind, status and protection, all texts marked, every event linked to all others."""

    records: list[Made]
    terms: dict[int, tuple[int, int]]
    """Event -> a category and a tag that no other event has."""

    def of(self, kind: str) -> list[Made]:
        return [record for record in self.records if record.kind == kind]

    def allowed(self, caller: str) -> set[tuple[str, str, str]]:
        """The canaries that a caller may see somewhere; of a locked event its title."""
        return {
            (record.kind, str(record.number), name)
            for record in self.records
            if table.sees(caller, record)
            for name in (FIELDS[record.kind] if table.opens(caller, record) else ("title",))
        }


@pytest.fixture
async def aviary(roles: Roles, store: Store) -> Aviary:
    async def build() -> Aviary:
        admin, ids = roles["admin"], await table.role_ids(store)
        posts = [*marked("venue"), *marked("organizer")]
        places = ({"geo_lat": place(one.number)[0], "geo_lng": place(one.number)[1]} for one in posts)
        made = (
            table.make(admin, ids, one, **(where if one.kind == "venue" else {}))
            for one, where in zip(posts, places, strict=True)
        )
        records = await table.together(made)
        links = {name: [one.id for one in records if one.kind == name] for name in ("venue", "organizer")}

        async def event(one: Made) -> tuple[Made, tuple[int, int]]:
            name = f"Own {one.number}"
            category, tag = [(await admin.made(plural, name=name))["id"] for plural in TERMS.values()]
            made = await table.make(admin, ids, one, **links, categories=[category], tags=[tag])
            return made, (category, tag)

        events = await table.together(map(event, marked("event")))
        terms = {one.id: own for one, own in events}
        records += [one for one, _ in events]
        return Aviary(records, terms)

    built: Aviary = await table.once(store, "aviary", build)
    return built


class Crawler:
    """Asks as one caller, and notes every canary in an answer that is not the caller's to see."""

    def __init__(self, api: Api, allowed: set[tuple[str, str, str]]) -> None:
        self.api = api
        self.allowed = allowed
        self.leaks: list[str] = []
        self.asked = 0

    async def get(self, path: str, method: str = "GET", **query: Any) -> tuple[int, Any]:
        status, body = await self.api.send(method, path, params=query or None, allow_redirects=False)
        self.asked += 1
        sent = {found.groups() for found in CANARY.finditer(f"{path} {query}")}
        unfolded = self.api.text.replace("\r\n ", "")  # iCalendar and vCard break long lines
        answered = f"{unfolded} {dict(self.api.headers)}"
        seen = {found.groups() for found in CANARY.finditer(answered)}
        if leaked := seen - self.allowed - sent:
            self.leaks.append(f"{method} {path} {query}: {sorted(leaked)}")
        return status, body

    async def walk(self, plural: str, **query: Any) -> list[Any]:
        """All rows of a list, page by page; as many as its total, each once. None for what is refused."""
        rows: list[Any] = []
        status, body = await self.get(f"/{plural}", per_page="20", **query)
        if status == 400:
            return []
        assert status == 200, (plural, query, body)
        for page in range(2, body["total_pages"] + 1):
            rows += body[plural]
            status, body = await self.get(f"/{plural}", per_page="20", page=str(page), **query)
            assert status == 200, (plural, query, page, body)
        rows += body[plural]
        assert body["total"] == len(rows) == len({row["id"] for row in rows}), (plural, query)
        assert self.api.headers["X-TEC-Total"] == str(len(rows))
        return rows


@pytest.fixture
def crawler(roles: Roles, aviary: Aviary, caller: str) -> Crawler:
    return Crawler(roles[caller], aviary.allowed(caller))


def numbers(rows: list[Any]) -> set[int]:
    return {row["id"] for row in rows}


@every_reader
async def test_items_show_no_text_that_is_not_the_caller_s(
    crawler: Crawler, aviary: Aviary, caller: str
) -> None:
    for path in ("/", "/doc", "//docs", "//", "//health/ready"):
        await crawler.get(path)
    for record in aviary.records:
        for path in record.paths:
            status, body = await crawler.get(path)
            assert (status, code_of(body)) == table.read(caller, record), record
        await crawler.get(record.paths[record.number % 2], ("HEAD", "PUT", "TRACE")[record.number % 3])
        await crawler.get(f"//{record.kind}/{record.slug}/")
        if record.status == "trash":
            await crawler.get(f"/{record.plural}/by-slug/{record.slug.removesuffix('__trashed')}")
        if record.kind == "event" and status == 200:
            for field in ("venue", "organizer"):
                shown = [one["id"] for one in body[field]]
                seen = [one.id for one in aviary.of(field) if table.lists(caller, one)]
                assert shown == seen, (record, field)
            described = json.dumps(body["json_ld"])
            assert ("canary-venue-0-" in described, "canary-venue-11-" in described) == (True, False)
    for terms in aviary.terms.values():
        for plural, id in zip(TERMS.values(), terms, strict=True):
            assert (await crawler.get(f"/{plural}/{id}"))[0] == 200
    assert not crawler.leaks, "\n".join(crawler.leaks)


@every_reader
async def test_lists_show_no_text_that_is_not_the_caller_s(
    crawler: Crawler, aviary: Aviary, caller: str
) -> None:
    for kind, plural in POSTS.items():
        expected = {record.id for record in aviary.of(kind) if table.lists(caller, record)}
        orders = ("start_date", "end_date") if kind == "event" else ()
        for orderby in ("title", "date", "modified", "id", *orders):
            rows = await crawler.walk(plural, orderby=orderby, order="desc")
            assert numbers(rows) == expected, (kind, orderby)
        for status in STATUSES:
            rows = await crawler.walk(plural, status=status)
            asked = {record.id for record in aviary.of(kind) if record.status == status}
            assert numbers(rows) <= asked
            assert {row["status"] for row in rows} <= {status}
    for row in await crawler.walk("events"):
        (event,) = (record for record in aviary.of("event") if record.id == row["id"])
        blank: dict[str, Any] = {"description": "", "excerpt": "", "cost": "", "website": "", "image": False}
        blank |= {name: [] for name in ("categories", "tags", "venue", "organizer")}
        is_blank = {name: row[name] == value for name, value in blank.items()}
        assert set(is_blank.values()) == {not table.opens(caller, event)}, (event, is_blank)
    for day in ("2027-06-03", "2027-06-12"):
        for name in ("start_date", "end_date", "starts_after", "ends_before", "starts_before", "ends_after"):
            await crawler.walk("events", **{name: day})
    for plural in TERMS.values():
        for orderby in ("name", "slug", "id", "count", "parent", "description", "include"):
            rows = await crawler.walk(plural, orderby=orderby, hide_empty="0")
            assert len(rows) == len(aviary.terms)
    assert not crawler.leaks, "\n".join(crawler.leaks)


@every_reader
async def test_feeds_show_no_text_that_is_not_the_caller_s(
    crawler: Crawler, aviary: Aviary, caller: str
) -> None:
    for kind in (EVENT, VENUE, ORGANIZER):
        records = aviary.of(kind.name)
        for ending in formats_of(kind):
            feed = f"/{kind.plural}.{ending}"
            for query in ({}, {"search": "canary"}, *({"status": status} for status in STATUSES)):
                assert (await crawler.get(feed, **query))[0] in (200, 400)
            assert (await crawler.get(feed))[0] == 200
            assert "canary" in crawler.api.text  # everybody sees some records
            for record in records:
                status, body = await crawler.get(f"{record.paths[record.number % 2]}.{ending}")
                answer = (status, "" if status == 200 else code_of(body))
                assert answer == table.read(caller, record), (record, ending)
    assert not crawler.leaks, "\n".join(crawler.leaks)


@every_reader
async def test_feeds_have_the_records_of_their_lists(crawler: Crawler, caller: str) -> None:
    """The same ids as the list, and the events that the caller may open show the same texts."""
    for kind in (EVENT, VENUE, ORGANIZER):
        for query in ({}, {"status": "publish,draft"}, {"status": "trash"}, {"search": "canary-"}):
            rows = await crawler.walk(kind.plural, **query)
            status, _ = await crawler.get(f"/{kind.plural}.csv", **query)
            found = list(csv.reader(io.StringIO(crawler.api.text, newline="")))[1:] if status == 200 else []
            assert {int(one[0]) for one in found} == numbers(rows), (kind.name, query)
            shown = {text for row in rows for text in re.findall(CANARY.pattern, json.dumps(row))}
            assert set(re.findall(CANARY.pattern, crawler.api.text)) <= shown if status == 200 else True


@every_reader
async def test_search_finds_no_text_that_is_not_the_caller_s(
    crawler: Crawler, aviary: Aviary, caller: str
) -> None:
    for record in aviary.records:
        expected = {record.id} if table.finds(caller, record) else set()
        names = FIELDS[record.kind]
        # All texts as those who see least; as the others one of each record, not always the same.
        chosen = names[:-1] if caller == "public" else [names[record.number % len(names)]]
        for at, name in enumerate(chosen):
            whole = canary(record.kind, record.number, name)
            text = whole if (record.number + at) % 2 else whole.rpartition("-")[2][:-2]
            found = expected if name in SEARCHED[record.kind] else set()
            assert numbers(await crawler.walk(record.plural, search=text)) == found, (record, text)
    assert numbers(await crawler.walk("events", search="canary")) == {
        record.id for record in aviary.of("event") if table.finds(caller, record)
    }
    assert not crawler.leaks, "\n".join(crawler.leaks)


def shows(caller: str, event: Made, record: Made) -> bool:
    """Whether a caller who lists the event is shown this venue or organizer in it."""
    return table.opens(caller, event) and table.lists(caller, record)


async def test_what_one_caller_is_shown_is_not_kept_for_the_next(roles: Roles, aviary: Aviary) -> None:
    """One process answers them all: first those who see most, then the others, and back again."""
    opened = [event for event in aviary.of("event") if event.locked and event.status == "publish"]
    for callers in (CALLERS[::-1], CALLERS):
        for event in opened:
            found = await roles["public"].get(event.paths[0], password=PASSWORD)
            assert (found[0], found[1]["description"]) == (200, event.texts["description"])
        for caller in callers:
            crawler = Crawler(roles[caller], aviary.allowed(caller))
            for record in aviary.records:
                status, body = await crawler.get(record.paths[0])
                assert (status, code_of(body)) == table.read(caller, record), (caller, record)
            for plural in POSTS.values():
                await crawler.walk(plural)
            assert not crawler.leaks, "\n".join(crawler.leaks)


@every_reader
async def test_filters_of_events_ask_only_what_the_caller_is_shown(
    crawler: Crawler, aviary: Aviary, caller: str
) -> None:
    """A filter on what a list blanks or leaves out would tell it all the same, guess by guess."""
    events = [event for event in aviary.of("event") if table.lists(caller, event)]
    opened = {event.id for event in events if table.opens(caller, event)}
    locked = {event.id for event in events} - opened
    wrong: list[Any] = []

    async def check(expected: set[int], **query: Any) -> None:
        found = numbers(await crawler.walk("events", **query))
        for id in found ^ expected:
            event = next(one for one in aviary.of("event") if one.id == id)
            wrong.append(("found" if id in found else "not found", query, event.status, event.locked))

    for record in (*aviary.of("venue"), *aviary.of("organizer")):
        expected = {event.id for event in events if shows(caller, event, record)}
        await check(expected, **{record.kind: str(record.id)})
        if record.kind == "venue":
            latitude, longitude = place(record.number)
            near = {"geoloc_lat": str(latitude), "geoloc_lng": str(longitude), "geoloc_radius": "5"}
            await check(expected, **near)
    for event in aviary.of("event"):
        only = {event.id} & opened
        category, tag = aviary.terms[event.id]
        await check(only, categories=str(category))
        by_name = (
            {"tags": f"Own {event.number}"}
            if event.number % 2
            else {"tags": str(tag), "include": str(event.id)}
        )
        await check(only, **by_name)
    await check(opened, geoloc="true")
    await check(locked, geoloc="false")
    await check(set(), ticketed="true")
    await check(opened | locked, featured="false")
    assert not wrong, "\n".join(map(str, wrong))
    assert not crawler.leaks, "\n".join(crawler.leaks)


@every_reader
async def test_filters_of_linked_records_ask_only_what_the_caller_is_shown(
    crawler: Crawler, aviary: Aviary, caller: str
) -> None:
    for event in aviary.of("event"):
        for kind in ("venue", "organizer"):
            seen = {one.id for one in aviary.of(kind) if table.lists(caller, one)}
            expected = seen if table.lists(caller, event) and table.opens(caller, event) else set()
            assert numbers(await crawler.walk(POSTS[kind], event=str(event.id))) == expected, event
        for plural, term in zip(TERMS.values(), aviary.terms[event.id], strict=True):
            expected = {term} if table.lists(caller, event) and table.opens(caller, event) else set()
            assert numbers(await crawler.walk(plural, event=str(event.id))) == expected, event
    for kind in ("venue", "organizer"):
        seen = {one.id for one in aviary.of(kind) if table.lists(caller, one)}
        for flag in ("has_events", "only_with_upcoming"):
            assert numbers(await crawler.walk(POSTS[kind], **{flag: "1"})) == seen
        assert await crawler.walk(POSTS[kind], has_events="0") == []
    assert not crawler.leaks, "\n".join(crawler.leaks)


@pytest.mark.parametrize("status", ["draft", "pending", "private", "future"])
async def test_unpublished_events_count_nowhere_for_the_public(roles: Roles, status: str) -> None:
    admin, public = roles["admin"], roles["public"]
    links = {
        "venue": {"venue": "Hall"},
        "organizer": {"organizer": "Club"},
        "tags": ["t"],
        "categories": ["c"],
    }
    event = await admin.event(status=status, date="2090-01-01 00:00:00", **links)
    assert event["status"] == status
    for plural in ("venues", "organizers"):
        assert len(await admin.ids(plural, has_events="1")) == 1
        assert await public.ids(plural, has_events="1") == []
        assert len(await public.ids(plural, has_events="0")) == 1
        assert await public.ids(plural, only_with_upcoming="1") == []
    for plural in TERMS.values():
        assert await public.ids(plural) == []
        _, page = await public.get(f"/{plural}", hide_empty="0")
        assert [term["count"] for term in page[plural]] == [0]


async def test_links_of_a_protected_event_do_not_show_in_counts(roles: Roles) -> None:
    """Neither a venue that has events, of which none is to be found, nor a tag with a count but no event."""
    admin, public = roles["admin"], roles["public"]
    links = {
        "venue": {"venue": "Hall"},
        "organizer": {"organizer": "Club"},
        "tags": ["t"],
        "categories": ["c"],
    }
    event = await admin.event(password=PASSWORD, **links)

    async def used() -> list[Any]:
        counted: list[Any] = []
        for plural in ("venues", "organizers"):
            counted += [
                len(await public.ids(plural, **{name: "1"})) for name in ("has_events", "only_with_upcoming")
            ]
            counted.append(1 - len(await public.ids(plural, has_events="0")))
        for plural in TERMS.values():
            _, page = await public.get(f"/{plural}", hide_empty="0")
            counted += [page[plural][0]["count"], len(await public.ids(plural))]
        return counted

    assert set(await used()) == {0}
    for plural in ("venues", "organizers"):
        assert len(await admin.ids(plural, has_events="1", only_with_upcoming="1")) == 1
    await admin.patch(f"/events/{event['id']}", {"new_password": ""})
    assert set(await used()) == {1}
    await admin.patch(f"/events/{event['id']}", {"new_password": PASSWORD})
    assert set(await used()) == {0}


@pytest.mark.parametrize(("plural", "field"), [("venues", "venue"), ("organizers", "organizer")])
@pytest.mark.parametrize("status", ["publish", "draft"])
async def test_who_cannot_open_a_protected_event_does_not_learn_of_its_links(
    roles: Roles, api: Api, plural: str, field: str, status: str
) -> None:
    """Neither by `event` nor by `has_events` and `only_with_upcoming`: viewers, and all in open mode."""
    admin = roles["admin"]
    names = ("secret", "both", "past", "plain")
    ids = {name: (await admin.made(plural, **{field: name}))["id"] for name in names}
    past = {"start_date": "2020-01-01 10:00", "end_date": "2020-01-01 12:00"}
    locked = [ids["secret"], ids["both"], ids["past"]]
    event = await admin.event(status=status, password=PASSWORD, **{field: locked})
    await admin.event(status=status, **{field: [ids["both"], ids["plain"]]})
    await admin.event(status=status, **past, **{field: ids["past"]})
    trashed = await admin.event(**{field: ids["secret"]})
    assert (await admin.delete(f"/events/{trashed['id']}"))[0] == 200

    async def told(caller: Api) -> list[set[str]]:
        asked = (
            {"has_events": "1"},
            {"has_events": "0"},
            {"only_with_upcoming": "1"},
            {"event": event["id"]},
        )
        found = [await caller.ids(plural, **query) for query in asked]
        return [{name for name, id in ids.items() if id in one} for one in found]

    opened = [set(names), set(), {"secret", "both", "past", "plain"}, {"secret", "both", "past"}]
    for caller in (admin, roles["editor"]):
        assert await told(caller) == opened
    for caller in (roles["viewer"], api):
        assert await told(caller) == [{"both", "past", "plain"}, {"secret"}, {"both", "plain"}, set()]
    await admin.patch(f"/events/{event['id']}", {"new_password": ""})
    for caller in (roles["viewer"], api):
        assert await told(caller) == opened


@pytest.mark.parametrize(("plural", "field"), [("venues", "venue"), ("organizers", "organizer")])
async def test_linked_record_comes_and_goes_with_its_status(roles: Roles, plural: str, field: str) -> None:
    admin, public = roles["admin"], roles["public"]
    record = await admin.made(plural, **{field: "Hall", "status": "draft"})
    event = await admin.event(**{field: record["id"]})

    async def shown() -> tuple[Any, list[int]]:
        status, body = await public.get(f"/events/{event['id']}")
        assert status == 200
        return body[field], await public.ids("events", **{field: str(record["id"])})

    path = f"/{plural}/{record['id']}"
    assert await shown() == ([], [])
    for status, is_shown in (("publish", True), ("private", False), ("publish", True), ("pending", False)):
        await admin.patch(path, {"status": status})
        body, found = await shown()
        assert (bool(body), found) == (is_shown, [event["id"]] if is_shown else []), status
    await admin.patch(path, {"status": "publish"})
    await admin.delete(path)
    assert await shown() == ([], [])


# Writing


@every_post
async def test_contributor_waits_for_an_editor_and_author_does_not(roles: Roles, kind: str) -> None:
    plural = POSTS[kind]
    for who, publish, future, default in (
        ("contributor", "pending", "pending", "draft"),
        ("author", "publish", "future", "publish"),
        ("editor", "publish", "future", "publish"),
    ):
        api, later = roles[who], {"date": "2090-01-01 00:00:00"}
        assert (await api.made(plural, **plain(kind)))["status"] == default
        for sent, expected in (({"status": "publish"}, publish), ({"status": "future"} | later, future)):
            made = await api.made(plural, **plain(kind), **sent)
            assert made["status"] == expected, (who, sent)
            for path in (f"/{plural}/{made['id']}", f"/{plural}/by-slug/{made['slug']}"):
                assert (await api.patch(path, {"status": "draft"}))[1]["status"] == "draft"
                status, body = await api.send("PUT", path, sent)
                assert (status, body["status"]) == (200, expected), (who, path, sent)


def plain(kind: str) -> dict[str, Any]:
    """The least that makes a record, without a link."""
    least = {table.NAMES[kind]: "Plain"} if kind in POSTS else {"name": "Plain"}
    times = {"start_date": "2027-06-01 10:00:00", "end_date": "2027-06-01 12:00:00"}
    return least | (times if kind == "event" else {})


@every_post
@pytest.mark.parametrize("by", ["id", "slug"])
async def test_contributor_publishes_nothing_through_its_date(roles: Roles, kind: str, by: str) -> None:
    """What an editor has scheduled does not come out early because its owner moves the date."""
    ids = {token["role"]: token["_id"] for token in await roles["editor"].store.tokens.list()}
    for sent in ({"date": "2020-01-01 00:00:00"}, {"date_utc": "2020-01-01 00:00:00", "status": None}):
        made = await roles["editor"].made(
            POSTS[kind], **plain(kind), author=ids["contributor"], status="future", date="2090-01-01 00:00:00"
        )
        path = f"/{POSTS[kind]}/{made['id'] if by == 'id' else 'by-slug/' + made['slug']}"
        status, body = await roles["contributor"].patch(path, sent)
        assert (status, code_of(body)) == (403, "rest_forbidden")
        assert (await roles["public"].get(path))[0] == 403


@every_post
@pytest.mark.parametrize("published", ["publish", "future"])
async def test_what_an_editor_has_published_is_no_longer_its_contributor_s(
    roles: Roles, kind: str, published: str
) -> None:
    contributor, editor = roles["contributor"], roles["editor"]
    made = await contributor.made(POSTS[kind], **plain(kind), status="publish")
    path, by_slug = f"/{POSTS[kind]}/{made['id']}", f"/{POSTS[kind]}/by-slug/{made['slug']}"
    assert (await contributor.patch(path, {"description": "mine"}))[0] == 200
    date = "2090-01-01 00:00:00" if published == "future" else "2020-01-01 00:00:00"
    _, shown = await editor.patch(path, {"status": published, "date": date})
    assert (shown["status"], shown["author"]) == (published, made["author"])
    for method, body in (
        ("PATCH", {"description": "changed"}),
        ("PUT", {"status": "draft"}),
        ("POST", {}),
        ("DELETE", None),
    ):
        for address in (path, by_slug):
            status, problem = await contributor.send(method, address, body)
            assert (status, code_of(problem)) == (403, "rest_forbidden"), (method, address)
    assert (await contributor.get(path))[1] == (await editor.get(path))[1]
    assert (await editor.patch(path, {"status": "draft"}))[0] == 200
    assert (await contributor.patch(by_slug, {"status": "publish"}))[1]["status"] == "pending"
    assert (await contributor.delete(path))[0] == 200


@every_post
async def test_contributor_s_trash_does_not_come_back_published(roles: Roles, kind: str) -> None:
    contributor = roles["contributor"]
    made = await contributor.made(POSTS[kind], **plain(kind))
    path = f"/{POSTS[kind]}/{made['id']}"
    assert (await roles["editor"].patch(path, {"status": "publish"}))[1]["status"] == "publish"
    assert (await roles["editor"].delete(path))[0] == 200
    assert (await contributor.patch(path, {"status": "publish"}))[1]["status"] == "pending"


@every_post
@pytest.mark.parametrize("who", WRITERS)
async def test_author_is_for_editors_to_choose(roles: Roles, store: Store, kind: str, who: str) -> None:
    ids = await table.role_ids(store)
    other = 4711 if who in ("editor", "admin") else ids[who]
    made = await roles[who].made(POSTS[kind], **plain(kind), author=4711)
    assert made["author"] == other
    again = await roles[who].made(POSTS[kind], **plain(kind))
    assert again["author"] == ids[who]
    for path in (f"/{POSTS[kind]}/{again['id']}", f"/{POSTS[kind]}/by-slug/{again['slug']}"):
        for method in ("POST", "PUT", "PATCH"):
            status, body = await roles[who].send(method, path, {"author": 4711, "description": method})
            assert (status, body["author"], body["description"]) == (200, other, method)
            assert (await store.database[POSTS[kind]].find_one({"_id": again["id"]}))["author"] == other  # type: ignore[index]


@pytest.mark.parametrize("who", ["contributor", "author", "editor"])
async def test_what_an_event_creates_follows_the_caller_s_rules(roles: Roles, store: Store, who: str) -> None:
    ids, api = await table.role_ids(store), roles[who]
    own = 4711 if who == "editor" else ids[who]
    for number, (sent, published, unpublished) in enumerate(
        [
            ({}, "publish", "draft"),
            ({"status": "publish"}, "publish", "pending"),
            ({"status": "future", "date": "2090-01-01 00:00:00"}, "future", "pending"),
            ({"status": "draft"}, "draft", "draft"),
        ]
    ):
        expected = unpublished if who == "contributor" else published
        for by in ("creation", "update"):
            links = {
                "venue": {"venue": f"Hall {number} {by}", "author": 4711, **sent},
                "organizer": [{"organizer": f"Club {number} {by}", "author": 4711, **sent}],
            }
            event = await api.event(**links if by == "creation" else {})
            if by == "update":
                status, event = await api.patch(f"/events/by-slug/{event['slug']}", links)
                assert status == 200, event
            for one in (event["venue"], event["organizer"][0]):
                assert (one["status"], one["author"]) == (expected, own), (sent, by)
            visible = [] if expected != "publish" else [event["venue"]["id"]]
            assert await roles["public"].ids("venues", search=f'"Hall {number} {by}"') == visible


async def test_contributor_creates_no_term(roles: Roles) -> None:
    contributor = roles["contributor"]
    known = {plural: (await roles["editor"].made(plural, name="Known"))["id"] for plural in TERMS.values()}
    event = await contributor.event(categories=["known"], tags=["KNOWN", known["tags"]])
    assert ([one["id"] for one in event["categories"]], len(event["tags"])) == ([known["categories"]], 1)
    for plural in TERMS.values():
        for method, path in (
            ("POST", "/events"),
            ("PATCH", f"/events/{event['id']}"),
            ("PUT", f"/events/by-slug/{event['slug']}"),
        ):
            body = plain("event") | {plural: ["Known", "Unheard of"]}
            status, problem = await contributor.send(method, path, body)
            assert (status, list(problem["data"]["params"])) == (400, [plural])
        assert await roles["admin"].ids(plural, hide_empty="0") == [known[plural]]
    assert await contributor.ids("events") == [event["id"]]
    assert (await contributor.get(f"/events/{event['id']}"))[1]["title"] == event["title"]


@pytest.mark.parametrize("who", ["contributor", "author"])
@pytest.mark.parametrize(("plural", "field"), [("venues", "venue"), ("organizers", "organizer")])
async def test_hidden_record_is_as_unknown_to_link_as_one_that_is_not_there(
    roles: Roles, who: str, plural: str, field: str
) -> None:
    api = roles[who]
    event = await api.event()
    said = set()
    for status in ("draft", "pending", "private", "future", "trash"):
        hidden = await roles["editor"].made(
            plural, **{field: f"Hidden {status}", "status": status, "date": "2090-01-01 00:00:00"}
        )
        for link in (
            hidden["id"],
            str(hidden["id"]),
            {"id": hidden["id"]},
            [{"id": hidden["id"], field: "x"}],
        ):
            for method, path in (("POST", "/events"), ("PATCH", f"/events/by-slug/{event['slug']}")):
                answered, problem = await api.send(method, path, plain("event") | {field: link})
                assert (answered, list(problem["data"]["params"])) == (400, [field]), (status, link)
                said.add(problem["data"]["params"][field].replace(str(hidden["id"]), "N"))
    _, problem = await api.patch(f"/events/{event['id']}", {field: 4711})
    assert said == {problem["data"]["params"][field].replace("4711", "N")}
    assert await api.ids("events") == [event["id"]]


@pytest.mark.parametrize("who", ["contributor", "author"])
async def test_hidden_event_is_as_unknown_a_parent_as_one_that_is_not_there(roles: Roles, who: str) -> None:
    api, said = roles[who], set()
    hidden = await roles["editor"].event(status="private")
    event = await api.event()
    for parent in (hidden["id"], 4711):
        for method, path in (("POST", "/events"), ("PATCH", f"/events/{event['id']}")):
            status, problem = await api.send(method, path, plain("event") | {"post_parent": parent})
            assert (status, code_of(problem)) == (400, "rest_invalid_param"), (
                parent,
                method,
            )
            said.add(problem["data"]["params"]["post_parent"])
    assert len(said) == 1


@pytest.mark.parametrize("kind", [*POSTS, *TERMS])
async def test_fields_of_the_server_do_nothing(roles: Roles, store: Store, kind: str) -> None:
    plural, api = (POSTS | TERMS)[kind], roles["author"]
    sent = {
        "id": 4711, "_id": 4711, "ID": 4711, "version": 99, "global_id": "x", "global_id_lineage": ["x"],
        "modified": "2001-01-01 00:00:00", "modified_utc": "2001-01-01 00:00:00", "url": "https://x.example",
        "events": {"publish": 99, "live": 99, "plan": 7}, "count": 99, "tok": [1], "text": "x", "sort": "x",
        "debt": "x", "last_change": "x", "key": "x", "claim": "0:x", "ancestors": [4711],
        "point": {"type": "Point", "coordinates": [1, 1]}, "rest_url": "x", "role": "admin",
        "bypasses_passwords": True,
        "start_utc": "2001-01-01 00:00:00", "json_ld": {"x": 1}, "$set": {"author": 1}, "author.x": 1,
        "taxonomy": "x", "urls": {"self": "x"},
    }  # fmt: skip
    hashed = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$RdescudvJCsgt3ub+b4dWRWJTmaaJObG"
    body = plain(kind) | ({} if kind == "event" else {"password": hashed, "new_password": hashed})

    async def stored(id: int) -> dict[str, Any]:
        found = await store.database[plural].find_one({"_id": id})
        assert found
        assert "x" not in (found.get("debt"), found.get("last_change"))
        return {
            name: value
            for name, value in found.items()
            if name
            not in ("_id", "slug", "modified_utc", "date_utc", "version", "claim", "key", "sort", "name")
            and name not in ("text", "tok", "debt", table.NAMES.get(kind))
        }

    usual = await api.made(plural, **plain(kind) | {table.NAMES.get(kind, "name"): "Usual"})
    odd = await api.made(plural, **body, **sent)
    assert {f"unknown field: {name}" for name in ("_id", "version", "$set")} <= set(odd.pop("warnings"))
    assert (odd["id"] < 4711, usual.keys()) == (True, odd.keys())
    assert await stored(odd["id"]) == await stored(usual["id"])
    for method in ("POST", "PUT", "PATCH"):
        before = await store.database[plural].find_one({"_id": odd["id"]})
        status, answer = await api.send(method, f"/{plural}/{odd['id']}", sent | {"password": hashed})
        assert (status, answer["id"]) == (200, odd["id"])
        assert await store.database[plural].find_one({"_id": odd["id"]}) == before


@pytest.mark.parametrize("kind", [*POSTS, *TERMS])
async def test_credentials_come_after_the_route_and_before_the_body(roles: Roles, kind: str) -> None:
    plural = (POSTS | TERMS)[kind]
    made = await roles["admin"].made(plural, **plain(kind))
    paths = [
        ("POST", f"/{plural}"),
        *((m, f"/{plural}/{made['id']}") for m in ("POST", "PUT", "PATCH", "DELETE")),
    ]
    paths += [(m, f"/{plural}/4711") for m in ("PUT", "DELETE")]
    if kind in POSTS:
        paths += [(m, f"/{plural}/by-slug/{made['slug']}") for m in ("POST", "PUT", "PATCH", "DELETE")]
    bodies: list[tuple[bytes, str]] = [
        (b"{", "application/json"), (b"[]", "application/json"), (b"{}", "application/json"),
        (b"\xff", "application/json"), (b"x", "text/plain"), (b"x" * 1_100_000, "application/json"),
    ]  # fmt: skip
    wrong_token = Api(roles["public"].client, roles["public"].store, "kal_wrong")
    for api, expected in ((roles["public"], 401), (wrong_token, 401), (roles["viewer"], 403)):
        for method, path in paths:
            for body, type in bodies:
                status, answer = await api.send(
                    method, path, data=io.BytesIO(body), headers={"Content-Type": type}
                )
                assert (status, code_of(answer)) == (expected, "rest_forbidden"), (method, path, body[:9])
                assert ("WWW-Authenticate" in api.headers) == (expected == 401)
        for method, path in (
            ("POST", "/nothing"),
            ("GET", f"/{plural}/x/y"),
            ("PATCH", f"/{plural}/by-slug/"),
        ):
            status, answer = await api.send(method, path, data=b"{")
            assert (status, code_of(answer)) == (404, "rest_no_route"), (method, path)
        status, answer = await api.patch(f"/{plural}", {})
        assert (status, code_of(answer)) == (405, "rest_method_not_allowed")
    assert (await roles["public"].get(f"/{plural}/{made['id']}"))[0] == 200


# Passwords


Sender = Callable[[str, str], dict[str, Any]]
WAYS: dict[str, Sender] = {
    "query": lambda method, password: {"params": {"password": password}},
    "header": lambda method, password: {"headers": {"X-Event-Password": password}},
    "body": lambda method, password: {"json": {"password": password}},
    "form": lambda method, password: {"data": {"password": password}},
}
DENIED = (403, "event-password-protected")


@pytest.fixture(params=["open", "token"])
async def guests(request: pytest.FixtureRequest, make_api: MakeApi, roles: Roles) -> tuple[Api, Api, Api]:
    """Who makes events, who writes them, who reads them; all of them need a password to do so."""
    if request.param == "open":
        api = await make_api(auth="open")
        return api, api, api
    return roles["author"], roles["author"], roles["public"]


@pytest.mark.parametrize("by", ["id", "slug"])
@pytest.mark.parametrize("way", WAYS)
async def test_password_is_needed_by_id_and_slug_in_every_way(
    guests: tuple[Api, Api, Api], way: str, by: str
) -> None:
    owner, writer, reader = guests
    event = await owner.event("Secret", description="zebra", password=PASSWORD)
    path = f"/events/{event['id'] if by == 'id' else 'by-slug/' + event['slug']}"
    methods = ["GET", "PATCH", "DELETE"] if way in ("query", "header") else ["PUT", "DELETE"]

    async def send(method: str, password: str | None) -> tuple[int, str]:
        options = {} if password is None else WAYS[way](method, password)
        status, body = await (reader if method == "GET" else writer).send(method, path, **options)
        assert status == 200 or "zebra" not in str(body)
        return status, code_of(body)

    for password in (None, "", f"{PASSWORD}x"):
        assert [await send(method, password) for method in methods] == [DENIED] * len(methods), password
    assert [await send(method, PASSWORD) for method in methods] == [OK] * len(methods)
    assert (await writer.get(path))[0] in (404, 410)


async def test_password_is_changed_and_removed_with_the_old_one(guests: tuple[Api, Api, Api]) -> None:
    owner, writer, reader = guests
    event = await owner.event()
    path = f"/events/{event['id']}"

    async def opening(*passwords: str) -> list[int]:
        return [
            (await reader.send("GET", path, headers={"X-Event-Password": one} if one else {}))[0]
            for one in passwords
        ]

    # A password alone sets nothing: it is what opens, not what is to be.
    assert (await writer.patch(path, {"password": "one", "description": "x"}))[0] == 200
    assert await opening("") == [200]
    assert (await writer.patch(path, {"new_password": "one"}))[0] == 200
    assert await opening("", "one", "two") == [403, 200, 403]
    assert (await writer.patch(path, {"new_password": "two"}))[0] == 403
    assert (await writer.patch(path, {"new_password": "two", "password": "two"}))[0] == 403
    assert (await writer.patch(path, {"new_password": "", "password": "two"}))[0] == 403
    assert (await writer.patch(path, {"new_password": "two", "password": "one"}))[0] == 200
    assert await opening("", "one", "two") == [403, 403, 200]
    by_slug = f"/events/by-slug/{event['slug']}"
    assert (await writer.patch(by_slug, {"new_password": None, "password": "two"}))[0] == 200
    assert await opening("", "one") == [200, 200]


@pytest.mark.parametrize("password", ["with blanks ", " ", "pässwörd 🎉", 'a&b=c#d%20+"\\', "0" * 200])
async def test_any_text_can_be_a_password(api: Api, password: str) -> None:
    path = f"/events/{(await api.event(password=password))['id']}"
    assert (await api.get(path))[0] == 403
    assert (await api.get(path, password=password))[0] == 200
    assert (await api.patch(path, {"password": password, "description": "x"}))[0] == 200
    assert (await api.get(path, password=password + "x"))[0] == 403


@every_caller
async def test_only_editors_and_admins_need_no_password(roles: Roles, store: Store, caller: str) -> None:
    ids = await table.role_ids(store)
    event = await roles["admin"].event(
        password=PASSWORD,
        author=ids.get(caller, 0),
        description="zebra",
        status="draft" if caller == "contributor" else "publish",  # theirs until it is published
    )
    path, api = f"/events/{event['id']}", roles[caller]
    needs_none = caller in ("editor", "admin")
    status, body = await api.get(path)
    assert (status, code_of(body)) == (OK if needs_none else DENIED)
    assert (await api.get(path, password=PASSWORD))[0] == 200
    assert (await api.get(path, password="wrong"))[0] == (200 if needs_none else 403)
    _, page = await api.get("/events")
    assert [one["description"] for one in page["events"]] == (["zebra"] if needs_none else [""])
    if caller in WRITERS:
        assert (await api.patch(path, {"excerpt": "x"}))[0] == (200 if needs_none else 403)
        assert (await api.patch(path, {"excerpt": "x", "password": PASSWORD}))[0] == 200
        assert (await api.delete(path))[0] == (200 if needs_none else 403)
        assert (await api.delete(path, params={"password": PASSWORD}))[0] == (410 if needs_none else 200)


async def test_guesses_count_together_however_the_event_is_addressed(api: Api) -> None:
    """Leading zeros, a slash at the end, capital letters and endings must not give more guesses."""
    event = await api.event("Some event", password=PASSWORD)
    id, slug = event["id"], event["slug"]
    answers = []
    endings = list(formats_of(EVENT))
    for number in range(60):
        ending = endings[number % len(endings)]
        path = [
            f"/events/{'0' * (number % 12)}{id}", f"/events/{id}/", f"/events/by-slug/{slug.title()}",
            f"/events/by-slug/{slug[:number % 9].upper()}{slug[number % 9:]}/", f"/events/{id}.{ending}",
        ][number % 5]  # fmt: skip
        answers.append((await api.get(path, password=f"guess {number}"))[0])
    assert set(answers) == {403, 429}
    assert answers.count(403) <= 20, answers
    assert answers[-4:] == [429] * 4


# Secrets stay secret


class Secrets:
    """What a session sends and must not see again, and all answers to it."""

    def __init__(self) -> None:
        self.sent: dict[str, str] = {}
        self.answers: list[str] = []

    def check(self, where: str, text: str) -> None:
        found = [name for name, secret in self.sent.items() if secret in text or quote(secret) in text]
        lines = [line for line in text.splitlines() if any(self.sent[name] in line for name in found)]
        assert not found, f"{found} in {where}: {lines[:3]}"
        assert "$argon2" not in text, f"a hash is in {where}"


async def session_of_secrets(client: Any, base: str, tokens: dict[str, str]) -> Secrets:
    """Every way to send a token or a password, right and wrong, in good requests and bad ones."""
    secrets = Secrets()
    for role, token in tokens.items():
        secrets.sent |= {f"token of {role}": token, f"digest of {role}": digest(token)}
    passwords = {name: f"pw-{name}-5d0e" for name in ("first", "second", "wrong", "useless")}
    secrets.sent |= passwords

    async def send(method: str, path: str, token: str = "", basic: bool = False, **options: Any) -> Any:
        headers = options.pop("headers", {})
        if token:
            basic_value = base64.b64encode(f"somebody:{token}".encode()).decode()
            headers = headers | {"Authorization": f"Basic {basic_value}" if basic else f"Bearer {token}"}
            secrets.sent[f"basic {token[:8]}"] = basic_value
        async with client.request(
            method, base + path, headers=headers, allow_redirects=False, **options
        ) as answer:
            text = await answer.text()
            secrets.answers.append(f"{answer.headers} {text}")
            return json.loads(text) if answer.content_type == "application/json" and text else text

    admin, author, wrong = tokens["admin"], tokens["author"], "kal_wrong-token-77"
    secrets.sent["wrong token"] = wrong
    first, second, bad, useless = passwords.values()
    event = await send("POST", "/events", author, json=plain("event") | {"password": first})
    path, by_slug = f"/events/{event['id']}", f"/events/by-slug/{event['slug']}"
    for address in (path, by_slug):
        for password in (first, bad):
            await send("GET", address, author, params={"password": password})
            await send("GET", address, headers={"X-Event-Password": password})
            await send("PATCH", address, author, basic=True, json={"password": password, "excerpt": "x"})
            await send("PATCH", address, author, data={"password": password, "excerpt": "y"})
            await send("PUT", address, author, json={"password": password, "end_date": "never"})
    await send("PATCH", path, author, json={"password": first, "new_password": second})
    await send("PATCH", path, author, json={"password": first, "new_password": {"x": second}})
    await send("PATCH", path, author, data=f'{{"new_password": "{second}", '.encode())
    await send("PATCH", path, author, data=f"new_password={second}&password=%ff")
    await send("GET", path, admin)
    for plural in ("events", "venues", "categories"):
        query = {"password": useless, "per_page": "1", "hide_empty": "0"}
        await send("GET", f"/{plural}", admin, params=query)
        await send("GET", f"/{plural}", wrong, params=query)
        await send("GET", f"/{plural}/4711", wrong, basic=True, params={"password": bad})
    await send("GET", f"/nowhere?password={first}", admin)
    await send("TRACE", f"{path}?password={first}", admin)
    await send("GET", f"{path}?password={first}&password=%ff", admin)
    for odd in ("Bearer", "Digest", "Basic"):
        await send("GET", path, headers={"Authorization": f"{odd} {admin} x"})
    await send("DELETE", path, author, params={"password": second})
    return secrets


@pytest.fixture
def everything_logged() -> Iterator[list[str]]:
    """The lines that the service logs when it is told to log all."""
    root, noisy = logging.getLogger(), ("pymongo", "pymongo.client", "asyncio", "aiohttp.access")
    handlers, level = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in noisy}
    root.handlers[:] = []  # or they would be closed
    configure("debug")
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(logging.Formatter("%(name)s %(message)s").format(record))

    root.addHandler(Keep())
    yield lines
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)


async def test_no_secret_is_answered_or_logged(everything_logged: list[str], roles: Roles) -> None:
    api = roles["public"]
    tokens = {name: one.token for name, one in roles.items() if one.token}
    logging.getLogger("kalends.test").debug("is listened to")
    secrets = await session_of_secrets(api.client, api.store.site.namespace, tokens)
    await api.store.maintain()
    assert any("is listened to" in line for line in everything_logged)
    assert len(secrets.answers) > 40
    for text in secrets.answers:
        secrets.check("an answer", text)
    secrets.check("the log", "\n".join(everything_logged))


async def test_no_secret_is_logged_when_something_breaks(
    everything_logged: list[str], roles: Roles, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = roles["public"]

    async def broken(*_: Any) -> None:
        raise RuntimeError("a bug")

    event = await roles["author"].event(password=PASSWORD)
    monkeypatch.setattr(api.store.passwords, "check", broken)
    monkeypatch.setattr(api.store.passwords, "hash", broken)
    secrets = Secrets()
    secrets.sent = {"token": roles["author"].token, "password": PASSWORD}
    for method, options in (
        ("GET", {"params": {"password": PASSWORD}}),
        ("PATCH", {"json": {"password": PASSWORD}}),
        ("DELETE", {"headers": {"X-Event-Password": PASSWORD}}),
    ):
        status, body = await roles["author"].send(method, f"/events/{event['id']}", **options)
        assert (status, code_of(body)) == (500, "rest_internal_error")
        secrets.check("an answer", str(body))
    status, body = await roles["author"].post("/events", plain("event") | {"password": PASSWORD})
    assert status == 500
    assert sum("a bug" in line for line in everything_logged) == 4
    secrets.check("the log", "\n".join(everything_logged))


MALFORMED = [
    "GET {path}?password={password} HTTP/9.9\r\nHost: x\r\n\r\n",
    "GET {path}?password={password}\x01 HTTP/1.1\r\nHost: x\r\n\r\n",
    "G@T {path}?password={password} HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET {path} HTTP/1.1\r\nHost: x\r\nX-Event-Password : {password}\r\n\r\n",
    "GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\x00\r\n\r\n",
    "GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nBad Header: {password}\r\n\r\n",
    "GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization Bearer {token}\r\n\r\n",
    "PATCH {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: {password}\r\n\r\n",
    "PATCH {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
    'Transfer-Encoding: chunked\r\n\r\nzz\r\n{{"password": "{password}"}}\r\n0\r\n\r\n',
    "GET {path} HTTP/1.1\r\nHost: x\r\nX: " + "y" * 9000 + "\r\nX-Event-Password: {password}\r\n\r\n",
    "GET {path}?password={password}&x=" + "y" * 9000 + " HTTP/1.1\r\nHost: x\r\n\r\n",
]


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
async def test_a_process_writes_no_secret_to_its_log(
    roles: Roles, store: Store, mongodb_uri: str, worker_id: str, tmp_path: Path, workers: str
) -> None:
    """The real program, told to log all, through a good session and malformed requests."""
    settings = {"MONGODB_URI": mongodb_uri, "DATABASE": f"test_{worker_id}", "AUTH": "token"}
    settings |= {"LOG_LEVEL": "debug", "WORKERS": workers}
    tokens = {name: one.token for name, one in roles.items() if one.token}
    async with running(tmp_path / "data", **settings) as service:
        client = roles["public"].client.session
        secrets = await session_of_secrets(client, service.api, tokens)
        secrets.sent["malformed"] = password = "pw-malformed-5d0e"
        port = int(service.root.rpartition(":")[2])
        for text in MALFORMED:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            path = service.api.removeprefix(service.root) + "/events/1"
            writer.write(text.format(path=path, password=password, token=tokens["admin"]).encode("latin-1"))
            await writer.drain()
            await asyncio.wait_for(reader.read(100), 10)
            writer.close()
    for text in secrets.answers:
        secrets.check("an answer", text)
    secrets.check("the log", service.errors.read_text())
    secrets.check("the output", service.errors.with_suffix(".out").read_text())


# Tokens


ROUTES = [
    "/",
    "/doc",
    "/events",
    "/events/{event}",
    "/events/by-slug/event",
    "/venues",
    "/organizers",
    "/tags",
    "/categories",
]


@pytest.mark.parametrize("mode", ["open", "token"])
async def test_wrong_or_revoked_token_is_refused_even_where_none_is_needed(
    make_api: MakeApi, store: Store, mode: str
) -> None:
    api = await make_api(auth=mode)
    token = await api.store.tokens.create("Me", Role.ADMIN)
    other = await api.store.tokens.create("Other", Role.ADMIN)
    event = await Api(api.client, store, token).event()
    (mine, _) = await store.tokens.list()
    assert await store.tokens.revoke(mine["_id"])
    api.store.tokens._known.clear()
    for sent in (
        token,
        token[:-1],
        token.upper(),
        token + "x",
        "kal_",
        digest(token),
        digest(other),
        other[:-1],
    ):
        for path in ROUTES:
            wrong = Api(api.client, store, sent)
            status, body = await wrong.get(path.format(event=event["id"]))
            assert (status, code_of(body)) == (401, "rest_forbidden"), path
            assert "WWW-Authenticate" in wrong.headers
    for path in ROUTES:
        assert (await api.get(path.format(event=event["id"])))[0] == 200, path
    assert (await Api(api.client, store, other).patch(f"/events/{event['id']}", {"excerpt": "x"}))[0] == 200


@pytest.mark.parametrize("name", ["admin", "", "nobody at all", "ünï"])
async def test_basic_takes_any_user_name(roles: Roles, name: str) -> None:
    for role, expected in (("editor", 201), ("viewer", 403)):
        value = base64.b64encode(f"{name}:{roles[role].token}".encode()).decode()
        for number, scheme in enumerate(("Basic", "basic", "BASIC")):
            status, _ = await roles["public"].post(
                "/tags", {"name": f"Tag {number}"}, headers={"Authorization": f"{scheme} {value}"}
            )
            assert status == expected
    value = base64.b64encode(f"{roles['editor'].token}:".encode()).decode()
    status, _ = await roles["public"].get("/tags")
    assert status == 200
    status, _ = await roles["public"].send("GET", "/tags", headers={"Authorization": f"Basic {value}"})
    assert status == 401


async def test_revoked_token_ends_everywhere_within_five_seconds(roles: Roles, store: Store) -> None:
    """The second store stands for another process: it knows the token, and is not told."""
    other = Store(store.database, Site())
    editor = roles["editor"]
    ids = await table.role_ids(store)
    known = await other.tokens.caller(editor.token)
    assert known
    assert known.role is Role.EDITOR
    assert (await editor.post("/tags", {"name": "Before"}))[0] == 201
    assert await store.tokens.revoke(ids["editor"])
    assert not await store.tokens.revoke(ids["editor"])

    async def is_over() -> bool:
        answered, _ = await editor.get("/tags")
        return answered == 401 and await other.tokens.caller(editor.token) is None

    await until(is_over, 5)
    assert (await editor.post("/tags", {"name": "After"}))[0] == 401
    await other.close()


async def test_token_of_a_new_process_works_at_once(roles: Roles, store: Store) -> None:
    other = Tokens(store.database, Ids(store.database), store.feed, BackgroundTasks())
    made = await other.create("New", Role.AUTHOR)
    assert (await Api(roles["public"].client, store, made).post("/tags", {"name": "New"}))[0] == 201
    ids = [token["_id"] for token in await store.tokens.list()]
    assert len(set(ids)) == len(ids) == len(Role) + 1


async def test_tokens_and_passwords_are_stored_only_as_hashes(roles: Roles, store: Store) -> None:
    event = await roles["author"].event(password=PASSWORD)
    await roles["author"].patch(
        f"/events/{event['id']}", {"password": PASSWORD, "new_password": "another-5d0e"}
    )
    await roles["author"].get(f"/events/{event['id']}", password="another-5d0e")
    everything = ""
    for name in await store.database.list_collection_names():
        everything += str(await store.database[name].find().to_list(None))
    tokens = [api.token for api in roles.values() if api.token]
    assert all(digest(token) in everything for token in tokens)
    for secret in (*tokens, *(token.removeprefix("kal_") for token in tokens), PASSWORD, "another-5d0e"):
        assert secret not in everything
    found = await store.database["events"].find_one({"_id": event["id"]})
    assert found
    assert found["password"].startswith("$argon2id$")
    assert len(set(tokens)) == len(tokens)
    assert all(len(token) > 40 for token in tokens)
    assert "digest" not in str(await store.tokens.list())
