"""`kalends doctor` finds planted damage, repairs it, and changes nothing else."""

from __future__ import annotations

import asyncio
import copy
import random
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from bson.datetime_ms import DatetimeMS
from pymongo.errors import AutoReconnect, OperationFailure

from config import Settings
from schemas.caller import Role
from schemas.errors import UnderRestore
from schemas.kinds.event_representation import LINKED
from schemas.values.dates import EPOCH
from service.changes.restores import MARKER, RestoreUnderWay
from service.doctor.checks import STAGES
from service.doctor.command import check_database
from service.doctor.runner import Examination
from service.doctor.scope import Scope
from service.migrations import FORM
from service.store import Store
from service.store.links.fanout import ABANDONED_AFTER
from service.webhooks.subscriptions import Subscription, Webhooks
from tests.conftest import Api
from tests.damages import (
    DAMAGES,
    FUTURE,
    Damage,
    Plant,
    both,
    claim_of_another,
    inserted,
    on,
    removed,
    slug_of_a_younger_venue,
)
from tests.test_faults import environment

pytestmark = pytest.mark.slow

Database = dict[str, dict[Any, Any]]
NOT_COMPARED = {"fanout_jobs", "idempotency_keys"}


async def examined(store: Store, *, repairs: bool = False) -> list[str]:
    """The lines that a run prints; it has a store of its own, as the command has."""
    lines: list[str] = []
    own = Store(store.database, store.site)
    try:
        run = Examination(Scope(own), repairs=repairs, report=lines.append, show=lambda done: None)
        await run.run(STAGES)
    finally:
        await own.close()
    return lines


async def everything(store: Store) -> Database:
    """All documents, without what every write and read moves."""
    found: Database = {}
    for name in await store.database.list_collection_names():
        rows = await store.database[name].find().to_list(None)
        found[name] = {repr(row["_id"]): row for row in rows}
    found["meta"]["'change_log'"].pop("at", None)
    for name in NOT_COMPARED:
        found.pop(name, None)
    return found


async def indexes(store: Store) -> dict[str, Any]:
    names = await store.database.list_collection_names()
    return {
        name: await store.database[name].index_information() for name in names if name not in NOT_COMPARED
    }


async def filled(api: Api) -> None:
    """Records of every shape, as requests make them."""
    await api.made("categories", name="Music")  # 1
    await api.made("categories", name="Jazz", parent=1)  # 2
    await api.made("categories", name="Bebop", parent=2)  # 3
    await api.made("categories", name="Gone", parent=1)  # 4
    await api.made("categories", name="Left", parent=4)  # 5
    await api.made("tags", name="outdoor", slug="open-air")  # 6
    await api.made("tags", name="Family")  # 7
    await api.delete("/categories/4")
    await api.made("venues", venue="Hall", city="Bonn", geo_lat=50.7, geo_lng=7.1)  # 1
    await api.made("venues", venue="Barn", description="Old & large")  # 2
    await api.made("organizers", organizer="Club", email="a@example.org")  # 3
    links = {"categories": [1, 3], "tags": [6, 7], "venue": [1], "organizer": [3]}
    berlin = {"timezone": "Europe/Berlin", "start_date": "2027-07-01 20:00", "end_date": "2027-07-01 23:30"}
    await api.event(
        "Concert in the park", **links, **berlin, cost="$5, $10, $20", description="<p>Bring chairs</p>"
    )
    await api.event(
        "Fair",
        all_day=True,
        cost=15,
        venue=[1, 2],
        categories=[2],
        start_date="2027-08-01",
        end_date="2027-08-02",
    )
    await api.event("Secret", password="open sesame", venue=[2], organizer=[3])
    await api.event("Old news", status="draft", tags=[7], post_parent=4)
    await api.event("Rubbish", venue=[1], categories=[1])
    await api.delete("/events/8")
    await api.event("Rescued", organizer=[3])
    await api.delete("/events/9")
    await api.patch("/events/9", {"status": "publish"})
    await api.event("Fair", date="2050-01-01")
    await api.made("events", title="Thrown", status="trash", start_date="2027-01-01", end_date="2027-01-01")
    await api.patch("/venues/1", {"phone": "123"})
    await api.patch("/events/4", {"featured": True})
    await api.delete("/venues/2")
    await api.store.tokens.create("Town hall", Role.EDITOR)
    since = (await api.get("/changes"))[1]["next"]
    await Webhooks(api.store).add(Subscription("https://example.org/hook", "kinds=events"), since)
    await api.store.log.update()


@pytest.fixture
async def clean(api: Api) -> Store:
    await filled(api)
    return api.store


async def test_nothing_is_found_in_a_clean_database(clean: Store) -> None:
    before = await everything(clean)
    assert await examined(clean) == []
    assert await examined(clean, repairs=True) == []
    assert await everything(clean) == before


async def test_nothing_is_found_in_an_empty_database(store: Store) -> None:
    assert await examined(store) == []


def comparable(found: Database) -> Database:
    """Without what changes with a version: times of changes, rows of the log, numbers given meanwhile."""
    kept = copy.deepcopy(found)
    for name in ("changes", "counters"):
        kept.pop(name)
    kept["meta"]["'change_log'"].pop("number")
    for plural in ("events", "venues", "organizers", "categories", "tags"):
        for record in kept[plural].values():
            for one in (record, *copies(record)):
                one.pop("version", None)
                one.pop("modified_utc", None)
                one.pop("has_own_time", None)
            record.get("events", {}).pop("as_of", None)
    return kept


def copies(record: Any) -> list[Any]:
    lists = [record[name] for name in LINKED if isinstance(record.get(name), list)]
    return [copy for many in lists for copy in many if isinstance(copy, dict)]


def versions(found: Database) -> dict[str, Any]:
    plurals = ("events", "venues", "organizers", "categories", "tags")
    return {f"{plural} {row['_id']}": row["version"] for plural in plurals for row in found[plural].values()}


def begin(lines: list[str], expected: list[str]) -> bool:
    pairs = zip(sorted(lines), sorted(expected), strict=True)
    return len(lines) == len(expected) and all(line.startswith(one) for line, one in pairs)


@asynccontextmanager
async def dropped_after_a_failure(store: Store) -> AsyncIterator[None]:
    """No other test meets the damage."""
    try:
        yield
    except BaseException:
        await store.client.drop_database(store.database.name)
        raise


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.name)
async def test_damage_is_found_and_repaired(clean: Store, damage: Damage) -> None:
    async with dropped_after_a_failure(clean):
        before, indexed = await everything(clean), await indexes(clean)
        await damage.plant(clean.database)
        planted = await everything(clean)
        found = [line for line in await examined(clean) if damage.is_counted or ": counters: " not in line]
        assert begin(found, damage.lines), found
        assert comparable(await everything(clean)) == comparable(planted)
        repaired = await examined(clean, repairs=True)
        assert begin(repaired, damage.lines), repaired
        assert all(line.endswith("; repaired") for line in repaired), repaired
        assert await examined(clean) == []
        after = await everything(clean)
        assert comparable(after) == comparable(before)
        assert await indexes(clean) == indexed
        assert {
            name for name, one in versions(before).items() if versions(after)[name] != one
        } == damage.changed


TWICE: dict[str, tuple[Plant, str]] = {
    "a slug, which the younger venue had": (slug_of_a_younger_venue, "venue 1: slug 'barn__trashed' is also"),
    "a claim, which the younger category had": (
        claim_of_another,
        "category 1: claim '1:jazz' is also that of category 2",
    ),
}


@pytest.mark.parametrize(("plant", "line"), TWICE.values(), ids=TWICE)
async def test_a_value_stays_with_the_record_that_had_it(clean: Store, plant: Plant, line: str) -> None:
    async with dropped_after_a_failure(clean):
        before = await everything(clean)
        await plant(clean.database)
        repaired = await examined(clean, repairs=True)
        assert repaired[0].startswith(line)
        assert all(line.endswith("; repaired") for line in repaired), repaired
        assert await examined(clean) == []
        assert comparable(await everything(clean)) == comparable(before)


@pytest.mark.parametrize("value", [5, {"version": 3, "was": {}, "now": {"venue": [None]}}, {"was": 1}])
async def test_a_change_that_cannot_be_read_is_forgotten(clean: Store, value: Any) -> None:
    async with dropped_after_a_failure(clean):
        await on("events", 4, last_change=value)(clean.database)
        assert begin(await examined(clean, repairs=True), ["event 4: last_change is "])
        assert await examined(clean) == []


async def test_a_running_service_survives_changes_of_any_form(clean: Store, api: Api) -> None:
    """What is changed in the same moment is shown, too."""
    async with dropped_after_a_failure(clean):
        await api.get("/events/5")
        forms: list[Any] = [5, {"was": 1, "now": None}, {"was": {}, "now": {"venue": [None]}}]
        for version, value in enumerate(forms, 7):
            await on("events", 4, last_change=value)(clean.database)
            await on("events", 5, title=f"Changed {version}", version=version)(clean.database)
            assert (await api.get("/events/5"))[1]["title"] == f"Changed {version}"
            assert (await api.get("/changes"))[0] == 200
        await clean.client.drop_database(clean.database.name)


async def test_of_two_tags_with_the_same_name_one_has_the_claim(clean: Store) -> None:
    async with dropped_after_a_failure(clean):
        await on("tags", 6, name="Family", claim="0:outdoor")(clean.database)
        lines = await examined(clean, repairs=True)
        told = "which another tag has: there are two of the same name; repaired"
        assert any(line.startswith("tag 6: its claim on a name") and line.endswith(told) for line in lines)
        assert await examined(clean) == []


async def test_collections_that_were_dropped_are_made_anew(clean: Store) -> None:
    async with dropped_after_a_failure(clean):
        for name in ("events", "words", "tokens", "changes"):
            await clean.database.drop_collection(name)
        lines = await examined(clean, repairs=True)
        assert all(line.endswith("; repaired") for line in lines), lines
        assert await examined(clean) == []


async def test_jobs_that_a_restore_has_left_are_no_damage(clean: Store) -> None:
    await inserted("fanout_jobs", id_="tag:7", at=EPOCH)(clean.database)
    assert await examined(clean) == []


async def test_a_job_that_is_about_to_be_resumed_is_waited_for(clean: Store) -> None:
    """Its process has died. Maintenance of any process runs it, but not at once."""
    async with dropped_after_a_failure(clean):
        event = await clean.database["events"].find_one({"tags.0": {"$exists": True}})
        assert event
        tag, at = event["tags"][0]["_id"], clean.feed.now - ABANDONED_AFTER - timedelta(seconds=2)
        await clean.database["tags"].update_one({"_id": tag}, {"$inc": {"version": 1}})
        await inserted("fanout_jobs", id_=f"tag:{tag}:x", at=at)(clean.database)

        async def maintained() -> None:
            await asyncio.sleep(1)
            await clean.fanout.resume_abandoned()

        assert await asyncio.gather(examined(clean), maintained()) == [[], None]


async def test_tokens_that_are_there_twice_do_not_prevent_the_index(clean: Store) -> None:
    async with dropped_after_a_failure(clean):
        token = await clean.database["tokens"].find_one()
        await clean.database["tokens"].drop_index("digest")
        await clean.database["tokens"].insert_many([token | {"_id": 2}, token | {"_id": "x"}])
        await examined(clean, repairs=True)
        assert await examined(clean) == []
        assert await clean.database["tokens"].find().to_list(None) == [token]


async def test_nothing_is_examined_while_a_restore_is_under_way(clean: Store) -> None:
    async with dropped_after_a_failure(clean):
        await inserted("meta", id_=MARKER)(clean.database)
        with pytest.raises(RestoreUnderWay):
            await examined(clean, repairs=True)
        await removed("meta", MARKER)(clean.database)


async def test_categories_with_wrong_parents_are_moved_once(clean: Store) -> None:
    """Together, although each is found by itself; events that have them get one new version for each."""
    async with dropped_after_a_failure(clean):
        terms, events = clean.database["categories"], clean.database["events"]
        wrong = {"_id": {"$in": [2, 3, 5]}}
        versions = {row["_id"]: row["version"] async for row in terms.find(wrong)}
        with_jazz = await events.find_one({"categories._id": 2})
        await terms.update_many(wrong, {"$set": {"parent": 88}})
        await examined(clean, repairs=True)
        assert await examined(clean) == []
        assert {row["_id"]: row["version"] - 1 async for row in terms.find(wrong)} == versions
        assert with_jazz
        moved = await events.find_one({"_id": with_jazz["_id"]})
        assert moved
        assert moved["version"] == with_jazz["version"] + 1


async def test_all_damage_at_once(clean: Store) -> None:
    """What hides other damage is repaired by a first run, the rest by another."""
    async with dropped_after_a_failure(clean):
        for damage in DAMAGES:
            with suppress(AssertionError, OperationFailure):  # another one has removed what it damages
                await damage.plant(clean.database)
        assert len(await examined(clean)) > 40
        await examined(clean, repairs=True)
        await examined(clean, repairs=True)
        assert await examined(clean) == []


NOT_COMPARABLE = [
    (
        "trashed by hand",
        on("events", 9, status="trash"),
        [
            "event 9: it is in the trash, but its slug is 'rescued'",
            "organizer 3: counters: number of events 2",
        ],
    ),
    (
        "restored by hand",
        on("events", 8, status="publish"),
        [
            "event 8: it is not in the trash, but trashed_from is 'publish'",
            "venue 1: counters: number of events 2, not 3",
            "category 1: counters: number of events 1, not 2",
        ],
    ),
    (
        "no identity",
        removed("meta", "instance"),
        ["database: its identity is missing or not valid (uuid)"],
    ),
    (
        "row beyond the checkpoint",
        inserted(
            "changes",
            id_=10**6,
            kind="tags",
            id=7,
            action="changed",
            at=datetime(2026, 1, 1),
            expires_at=datetime(2050, 1, 1),
        ),
        ["change log: it has changes up to number 1000000, but its checkpoint says"],
    ),
    (
        "lower number",
        on("meta", "change_log", number=3),
        ["change log: it has changes up to number"],
    ),
    (
        "row that cannot be read",
        lambda database: database["changes"].update_one({"id": 6}, {"$set": {"kind": "planets", "at": "?"}}),
        ["change "],
    ),
    (
        "no checkpoint",
        removed("meta", "change_log"),
        ["change log: its checkpoint is missing"],
    ),
    (
        "checkpoint without a number",
        on("meta", "change_log", number="x"),
        ["change log: its checkpoint has no valid time, number or identity"],
    ),
    (
        "checkpoint of the future",
        on("meta", "change_log", at=FUTURE),
        ["change log: its checkpoint is at 2096-10-02 07:06 UTC, in the future"],
    ),
    (
        "all words lost",
        lambda database: database["words"].delete_many({}),
        [],
    ),
    (
        "lost venue",
        removed("venues", 2),
        [
            "event 5: the copy of venue 2 is of a venue that does not exist",
            "event 6: the copy of venue 2 is of a venue that does not exist",
        ],
    ),
    (
        "expiry that is none",
        on("tokens", 1, expires_utc="never"),
        ["token 1: expires_utc is not valid"],
    ),
    (
        "lost times",
        on("events", 4, timezone="Mars/Base"),
        ["event 4: timezone is 'Mars/Base', not a time zone"],
    ),
]
"""Damage after which not everything is as it was before: something is lost, or was meant."""


@pytest.mark.parametrize(
    ("name", "plant", "lines"), NOT_COMPARABLE, ids=[name for name, *_ in NOT_COMPARABLE]
)
async def test_damage_is_repaired_as_far_as_possible(
    clean: Store, name: str, plant: Plant, lines: list[str]
) -> None:
    async with dropped_after_a_failure(clean):
        await plant(clean.database)
        assert await examined(clean) != []
        repaired = await examined(clean, repairs=True)
        assert begin(repaired, lines or repaired), repaired
        assert all(line.endswith("; repaired") for line in repaired), repaired
        assert await examined(clean) == []


LOST = [
    (
        on("events", 5, start=..., start_utc=...),
        "event 5: start cannot be known any more; a repair sets start 2027-08-02 00:00:00,",
        "publish",
    ),
    (
        on("events", 6, start=..., start_utc=None, end=DatetimeMS(2**60), end_utc=DatetimeMS(-(2**60))),
        "event 6: start and end cannot be known any more; a repair sets start 20",
        "draft",
    ),
]


@pytest.mark.parametrize(("plant", "line", "status"), LOST, ids=["one", "both"])
async def test_times_that_are_lost_are_set_and_can_be_corrected(
    clean: Store, api: Api, plant: Plant, line: str, status: str
) -> None:
    async with dropped_after_a_failure(clean):
        await plant(clean.database)
        repaired = [one for one in await examined(clean, repairs=True) if ": counters: " not in one]
        assert begin(repaired, [line]), repaired
        assert repaired[0].endswith("; repaired")
        assert await examined(clean) == []
        new = {"start_date": "2027-01-01 10:00", "end_date": "2027-01-01 11:00", "password": "open sesame"}
        code, event = await api.patch(f"/events/{line[6]}", new)
        assert (code, event.get("status")) == (200, status), event


REPORTED = [
    (
        on("events", 4, end=datetime(2020, 1, 1), end_utc=datetime(2019, 12, 31, 23)),
        "event 4: it ends before it",
    ),
    (on("events", 6, password=5), "event 6: password is not the hash of a password"),
    (on("events", 6, password=...), "event 6: it is protected, but its password is missing"),
    (inserted("events", id_="x"), "event 'x': its ID is not a positive whole number"),
    (inserted("tags", id_=float("inf")), "tag inf: its ID is not a positive whole number"),
    (on("tokens", 1, role="king"), "token 1: role is not valid"),
    (on("webhooks", 1, url=5), "webhook 1: url is not valid"),
]


@pytest.mark.parametrize(("plant", "line"), REPORTED, ids=[line for _, line in REPORTED])
async def test_what_cannot_be_repaired_is_reported_and_left(clean: Store, plant: Plant, line: str) -> None:
    async with dropped_after_a_failure(clean):
        await plant(clean.database)
        planted = await everything(clean)
        for repairs in (False, True):
            found = [one for one in await examined(clean, repairs=repairs) if not is_consequence(one)]
            assert begin(found, [line]), found
            assert "; cannot be repaired: " in found[0]
        assert without_counters(await everything(clean)) == without_counters(planted)
        await clean.client.drop_database(clean.database.name)


async def test_an_id_that_drivers_cannot_read_is_reported(clean: Store) -> None:
    async with dropped_after_a_failure(clean):
        await inserted("tags", id_=DatetimeMS(2**60))(clean.database)
        assert begin(await examined(clean), ["tag DatetimeMS(1152921504606846976): its ID is not a positive"])
        await clean.client.drop_database(clean.database.name)


def is_consequence(line: str) -> bool:
    """Whether a line is about counters, or a row of the log, that do not fit the damage."""
    return ": counters: " in line or line.startswith("change ")


def without_counters(found: Database) -> Database:
    kept = comparable(found)
    for kind in LINKED.values():
        for record in kept[kind.plural].values():
            record.pop("events", None)
    return kept


async def write(api: Api, chance: random.Random, number: int) -> None:
    """One of the writes that move counters, copies, slugs, the tree and the vocabulary."""
    links = {
        "venue": [chance.choice((1, 2))],
        "tags": [f"tag {chance.randrange(9)}"],
        "categories": [1, 2, 3],
    }
    event = chance.choice((4, 5, 6, 7, 8, 9))
    match chance.randrange(7):
        case 0 | 1:
            await api.event(f"Event {number}", **links)
        case 2:
            await api.patch("/venues/1", {"city": f"City {number}"})
        case 3:
            await api.patch(f"/events/{event}", {"title": f"Title {number}", "status": "publish", **links})
        case 4:
            await api.delete(f"/events/{event}")
        case 5:
            await api.patch("/categories/3", {"parent": chance.choice((0, 1, 2)), "name": f"Name {number}"})
        case 6:
            tags = (await api.get("/tags", per_page=50))[1]["tags"]
            await api.delete(f"/tags/{chance.choice(tags)['id']}") if tags else None


async def test_writes_of_running_services_are_no_damage(pair: tuple[Api, Api]) -> None:
    await filled(pair[0])
    chance, is_over = random.Random(7), asyncio.Event()

    async def keep_writing(api: Api) -> int:
        number = 0
        while not is_over.is_set():
            number += 1
            await write(api, chance, number)
        return number

    async def keep_maintaining(api: Api) -> int:
        number = 0
        while not is_over.is_set():
            number += 1
            await api.store.maintain()
            await asyncio.sleep(1)
        return number

    writers = [asyncio.create_task(keep_writing(api)) for api in pair for _ in range(2)]
    writers += [asyncio.create_task(keep_maintaining(api)) for api in pair]
    found = [await examined(pair[0].store, repairs=at % 2 == 1) for at in range(4)]
    is_over.set()
    assert min([await writer for writer in writers]) > 0
    assert found == [[]] * 4


async def test_running_services_show_what_was_repaired(pair: tuple[Api, Api]) -> None:
    await filled(pair[0])
    before = [await api.get("/events/4") for api in pair]
    for api in pair:
        assert len((await api.get("/events?search=chairs"))[1]["events"]) == 1
        assert len((await api.get("/events?venue=1&start_date=2020-01-01"))[1]["events"]) == 2
    database = pair[0].store.database
    await both(
        on("events", 4, venue__0__city="Köln", start_utc=datetime(2029, 1, 1), tok=[], locked=True),
        on("categories", 1, events__publish=17),
    )(database)
    assert len(await examined(pair[0].store, repairs=True)) > 4
    for api, (_, event) in zip(pair, before, strict=True):
        _, now = await api.get("/events/4")
        changing = {"modified", "modified_utc", "categories"}
        assert {n: one for n, one in now.items() if n not in changing} == {
            n: one for n, one in event.items() if n not in changing
        }
        assert len((await api.get("/events?search=chairs"))[1]["events"]) == 1
        assert len((await api.get("/events?venue=1&start_date=2020-01-01"))[1]["events"]) == 2
        assert (await api.get("/categories/1"))[1]["count"] == 1


def doctor(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    data_dir = Path(settings.pop("data_dir", "/nonexistent"))
    command = [sys.executable, "-m", "service", "doctor", *words]
    return subprocess.run(
        command, env=environment(data_dir, **settings), capture_output=True, text=True, check=False
    )


def test_there_is_no_database(tmp_path: Path) -> None:
    run = doctor(data_dir=str(tmp_path / "none"))
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == f"kalends: there is no database in {tmp_path / 'none'}\n"
    assert list(tmp_path.iterdir()) == []


def test_mongodb_cannot_be_reached() -> None:
    run = doctor("--repair", MONGODB_URI="mongodb://127.0.0.1:9/?replicaSet=rs0")
    assert (run.returncode, run.stdout) == (2, "")
    assert re.fullmatch(
        r"kalends: database kalends of MongoDB at 127.0.0.1:9 cannot be reached: .*\n", run.stderr
    )


def test_the_database_is_empty(mongodb_uri: str) -> None:
    run = doctor(MONGODB_URI=mongodb_uri, DATABASE="nothing")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.endswith(" is empty: there is nothing to check\n")
    assert run.stderr.count("\n") == 1


async def test_the_exit_status_tells_whether_something_is_left(clean: Store, mongodb_uri: str) -> None:
    named = {"MONGODB_URI": mongodb_uri, "DATABASE": clean.database.name}

    async def run(*words: str) -> tuple[int, str, str]:
        done = await asyncio.to_thread(doctor, *words, **named)
        return done.returncode, done.stdout, done.stderr.splitlines()[-1]

    async with dropped_after_a_failure(clean):
        assert await run() == (0, "", "Nothing is wrong")
        await on("tags", 7, key="x")(clean.database)
        line = "tag 7: key is 'x', not 'family'"
        hint = "1 finding; `kalends doctor --repair` repairs what can be repaired"
        assert await run() == (1, f"{line}\n", hint)
        assert await run("--repair") == (0, f"{line}; repaired\n", "1 finding: 1 repaired, 0 left")
        assert await run("--repair") == (0, "", "Nothing is wrong")


async def test_an_older_database_is_to_be_upgraded_first(clean: Store, mongodb_uri: str) -> None:
    async with dropped_after_a_failure(clean):
        await clean.database["meta"].delete_many({})
        run = await asyncio.to_thread(doctor, MONGODB_URI=mongodb_uri, DATABASE=clean.database.name)
        assert (run.returncode, run.stdout) == (2, "")
        assert "has no stored form: run `kalends migrate` first" in run.stderr
        assert await clean.database["meta"].count_documents({}) == 0
        await clean.start()


async def test_a_newer_database_cannot_be_checked(clean: Store, mongodb_uri: str) -> None:
    async with dropped_after_a_failure(clean):
        await on("meta", "form", number=FORM + 1)(clean.database)
        run = await asyncio.to_thread(doctor, MONGODB_URI=mongodb_uri, DATABASE=clean.database.name)
        assert (run.returncode, run.stdout) == (2, "")
        assert f"the database has the stored form {FORM + 1}, made by a newer version" in run.stderr
        assert run.stderr.count("\n") == 1
        await on("meta", "form", number=FORM)(clean.database)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (AutoReconnect("gone"), "cannot be reached: gone"),
        (RestoreUnderWay(), "a restore is replacing all records"),
        (UnderRestore(), "The calendar is being restored from a backup"),
    ],
)
async def test_what_ends_a_check_in_the_middle_is_no_finding(
    clean: Store,
    mongodb_uri: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    line: str,
) -> None:
    async def fails(*_: Any) -> None:
        raise error

    monkeypatch.setattr(Examination, "run", fails)
    settings = replace(Settings(), mongodb_uri=mongodb_uri, database=clean.database.name)
    assert await check_database(settings, repairs=True) == 2
    assert line in capsys.readouterr().err.splitlines()[-1]
