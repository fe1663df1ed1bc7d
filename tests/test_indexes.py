"""Indexes: made once however often they are asked for, and there is one for every list and every write."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from bson.codec_options import CodecOptions, DatetimeConversion
from motor.motor_asyncio import AsyncIOMotorCollection
from pymongo import IndexModel
from pymongo.errors import AutoReconnect

from schemas import BY_NAME, CATEGORY, EVENT, KINDS, ORGANIZER, TAG, VENUE, Kind
from schemas.caller import EVERYBODY, PUBLIC, Caller, Role
from schemas.kind import load
from schemas.kinds.event_representation import LINK_FIELD, copy_of
from service.migrations.id_counters import raise_id_counters
from service.mongo.indexes import INDEXES, create_indexes
from service.store import Store
from tests.samples import POSTS, named

pytestmark = pytest.mark.slow

EVENTS, RECORDS, LINKED = 2000, 600, 40
FIRST = 100_000
"""Ids from here on are those of the many."""
AUTHOR = Caller(7, Role.AUTHOR)
CALLERS = {"public": PUBLIC, "everybody": EVERYBODY, "author": AUTHOR}
every_kind = pytest.mark.parametrize("kind", KINDS, ids=named)


async def indexes_of(store: Store) -> dict[str, dict[str, Any]]:
    return {name: dict(await store.database[name].index_information()) for name in INDEXES}


@pytest.fixture
async def fresh(store: Store) -> AsyncIterator[Store]:
    """A store without a database yet."""
    fresh = Store(store.client[f"{store.database.name}_fresh"], store.site)
    yield fresh
    await fresh.close()
    await store.client.drop_database(fresh.database.name)


async def test_indexes_are_made_once_however_often_and_by_however_many(store: Store) -> None:
    before = await indexes_of(store)
    await create_indexes(store.database)
    await asyncio.gather(*(create_indexes(store.database) for _ in range(4)))
    assert await indexes_of(store) == before


async def test_a_lost_connection_does_not_stop_them(
    store: Store, fresh: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    create, lost = AsyncIOMotorCollection.create_indexes, set[str]()

    async def lose_first(self: Any, models: list[IndexModel]) -> Any:
        if self.name not in lost:
            lost.add(self.name)
            raise AutoReconnect
        return await create(self, models)

    monkeypatch.setattr(AsyncIOMotorCollection, "create_indexes", lose_first)
    await create_indexes(fresh.database)
    assert await indexes_of(fresh) == await indexes_of(store)
    assert lost == set(INDEXES)


async def test_four_processes_may_start_on_an_empty_database(store: Store, fresh: Store) -> None:
    expected = await indexes_of(store)
    await asyncio.gather(*(create_indexes(fresh.database) for _ in range(4)))
    assert await indexes_of(fresh) == expected
    await asyncio.gather(*(fresh.start() for _ in range(4)))
    assert await indexes_of(fresh) == expected


async def test_every_index_is_named_and_listed(store: Store) -> None:
    for name, found in (await indexes_of(store)).items():
        listed = [model.document["name"] for model in INDEXES[name]]
        assert len(set(listed)) == len(listed), name
        assert set(found) == {"_id_", *listed}, name


# A store with enough in it for the choice of an index to matter


class Filled(NamedTuple):
    """A store full of records, and ids to ask for."""

    store: Store
    ids: dict[str, int]


@pytest.fixture
async def filled(store: Store) -> Filled:
    """Thousands of events over the next two years: most of them public and ordinary, a few not."""
    # All numbers become words at once, or each record would wait for its own.
    await store.vocabulary.searchable(EVENT, {"title": "x", "description": " ".join(map(str, range(EVENTS)))})
    linked = {kind.name: await many(store, kind) for kind in (VENUE, ORGANIZER, CATEGORY, TAG)}
    ids = dict.fromkeys(linked, FIRST + 3)
    ids["event"] = await fill_events(store, linked)
    return Filled(store, ids)


async def many(store: Store, kind: Kind) -> list[dict[str, Any]]:
    """Some records to link to, and many more that few events link to."""
    created = await store.create(
        kind, load(kind.body_schema, {kind.name_field: kind.name}, store.site), EVERYBODY
    )
    template = await store.database[kind.plural].find_one({"_id": created["_id"]})
    assert template is not None
    now, rows = store.site.now(), []
    for number in range(RECORDS):
        row = template | {
            "_id": FIRST + number,
            "slug": f"{kind.name}-{number}",
            kind.name_field: f"{kind.name} {number}",
        }
        row |= await store.vocabulary.searchable(kind, row)
        if number < LINKED or number % 20 == 0:
            end = {"publish_end": now + timedelta(days=9), "live_end": now + timedelta(days=9)}
            row["events"] = template["events"] | {"publish": 1, "live": 1} | (end if kind.is_post else {})
        if kind.is_post:
            row |= {"author": number % 20, "status": status_of(number)}
            row |= {
                "date_utc": now - timedelta(hours=number),
                "modified_utc": now - timedelta(minutes=number),
            }
        else:
            row |= {"key": f"{kind.name} {number}", "claim": f"0:{kind.name} {number}"}
        rows.append(row)
    if kind is VENUE:
        rows[3] |= {"geo_lat": 10.0, "geo_lng": 20.0, "point": {"type": "Point", "coordinates": [20.0, 10.0]}}
    for row in rows[4:24] if kind is CATEGORY else ():
        row |= {"parent": FIRST + 2, "ancestors": [FIRST + 2]}
    await store.database[kind.plural].insert_many(rows, ordered=False)
    return rows


def status_of(number: int) -> str:
    return {0: "draft", 1: "trash"}.get(number % 61, "publish")


async def fill_events(store: Store, linked: dict[str, list[dict[str, Any]]]) -> int:
    sample = {key: value for key, value in EVENT.example.items() if key not in EVENT.links}
    created = await store.create(EVENT, load(EVENT.body_schema, sample, store.site), EVERYBODY)
    template = await store.database["events"].find_one({"_id": created["_id"]})
    assert template is not None
    now = store.site.now()
    events = []
    for number in range(EVENTS):
        start = now + timedelta(hours=8 * number + 30)
        event = template | {"_id": 200_000 + number, "slug": f"event-{number}", "title": f"Meeting {number}"}
        if number % 200 == 3:
            event["description"] = "a rareword here"
        event |= await store.vocabulary.searchable(EVENT, event)
        event |= {"start": start, "start_utc": start, "end": start, "end_utc": start + timedelta(hours=2)}
        event |= {"date_utc": now - timedelta(hours=number), "modified_utc": now - timedelta(minutes=number)}
        event |= {"author": number % 20, "status": status_of(number), "hide_from_listings": number % 97 == 0}
        event["locked"] = number % 50 == 9
        event |= {"featured": number % 100 == 3, "ticketed": number % 100 == 6}
        event["post_parent"] = created["_id"] if number % 100 == 7 else 0
        for name, found in linked.items():
            kind = BY_NAME[name]
            event[LINK_FIELD[name]] = [copy_of(kind, found[number % LINKED])]
        events.append(event)
    await store.database["events"].insert_many(events, ordered=False)
    return int(created["_id"])


@pytest.mark.parametrize("kind", [VENUE, ORGANIZER], ids=named)
@pytest.mark.parametrize("name", ["has_events", "only_with_upcoming"])
async def test_what_protected_events_link_to_is_found_by_few_of_them(
    profiled: Filled, kind: Kind, name: str
) -> None:
    await profiled.store.page(kind, load(kind.query_schema, {name: "1"}, profiled.store.site), EVERYBODY)
    rows = profiled.store.database["system.profile"].find({"command.distinct": "events"})
    (row,) = await rows.to_list(None)
    assert row["planSummary"] == "IXSCAN { locked: 1 }"
    assert row["docsExamined"] == EVENTS / 50
    assert not await whole_scans(profiled.store, 200)


# What lists ask for


def queries(kind: Kind, ids: dict[str, int], caller: str) -> dict[str, dict[str, str]]:
    """Each filter and each order, and some of them together."""
    tables = {"event": event_queries, "venue": linked_queries, "organizer": linked_queries}
    found = tables.get(kind.name, term_queries)(kind, ids)
    if kind.is_post:
        found["status"] = {"status": "publish" if caller == "public" else "draft,publish"}
    if kind.is_post and caller != "public":
        found["draft"] = {"status": "draft"}
    fields = kind.query_schema().fields
    orders = [
        {"orderby": name, "order": order}
        for name in fields["orderby"].metadata["enum"]
        for order in fields["order"].metadata["enum"]
    ]
    return found | {"/".join(order.values()): order for order in orders}


def event_queries(kind: Kind, ids: dict[str, int]) -> dict[str, dict[str, str]]:
    return {
        "nothing": {},
        "venue": {"venue": str(ids["venue"])},
        "organizer": {"organizer": str(ids["organizer"])},
        "categories": {"categories": str(ids["category"])},
        "tags": {"tags": str(ids["tag"])},
        "include": {"include": "200010,200020,200030"},
        "one day": {"start_date": "today +50 days", "end_date": "today +50 days"},
        "one day, relative": {"starts_after": "today +50 days", "starts_before": "today +51 days"},
        "one day, by end": {"ends_after": "today +50 days", "ends_before": "today +51 days"},
        "one hour": {"start_date": "now +50 days", "end_date": "now +1210 hours", "strict_dates": "1"},
        "starts_before": {"starts_before": "today +3 days"},
        "starts_after": {"starts_after": "today +650 days"},
        "ends_before": {"ends_before": "today +3 days"},
        "ends_after": {"ends_after": "today +650 days"},
        "end_date": {"end_date": "today +3 days"},
        "modified_after": {"modified_after": "now -1 hour"},
        "radius": {"geoloc_lat": "10", "geoloc_lng": "20"},
        "small radius": {"geoloc_lat": "10", "geoloc_lng": "20", "geoloc_radius": "1"},
        "geoloc": {"geoloc": "1"},
        "no geoloc": {"geoloc": "0"},
        "featured": {"featured": "1"},
        "not featured": {"featured": "0"},
        "ticketed": {"ticketed": "1"},
        "post_parent": {"post_parent": str(ids["event"])},
        "rare word": {"search": "rareword"},
        "part of a rare word": {"search": "rewor"},
        "rare phrase": {"search": '"a rareword here"'},
        "rare and common": {"search": "meeting rareword"},
        "number": {"search": "1234"},
        "common word": {"search": "meeting"},
        "unknown word": {"search": "zyxwv"},
        "venue of a day": {"venue": str(ids["venue"]), "start_date": "today", "end_date": "today +30 days"},
        "rare word at a venue": {"venue": str(ids["venue"]), "search": "rareword"},
        "venue, by title": {"venue": str(ids["venue"]), "orderby": "title"},
        "tag, newest first": {"tags": str(ids["tag"]), "orderby": "date", "order": "desc"},
        "featured of a tag": {"tags": str(ids["tag"]), "featured": "1"},
    }


SELECTIVE = {
    "venue", "organizer", "categories", "tags", "include", "one day", "one day, relative", "one day, by end",
    "one hour", "starts_before", "starts_after", "ends_before", "ends_after", "end_date", "modified_after",
    "radius", "small radius", "geoloc", "featured", "ticketed", "post_parent", "rare word",
    "part of a rare word", "rare phrase", "rare and common", "number", "unknown word", "venue of a day",
    "rare word at a venue", "featured of a tag", "draft",
}  # fmt: skip
"""Filters that few events pass: answering one reads few events."""


def linked_queries(kind: Kind, ids: dict[str, int]) -> dict[str, dict[str, str]]:
    return {
        "nothing": {},
        "event": {"event": "200010"},
        "has_events": {"has_events": "1"},
        "no events": {"has_events": "0"},
        "upcoming": {"only_with_upcoming": "1"},
        "search": {"search": f"{kind.name} 12"},
        "unknown word": {"search": "zyxwv"},
    }


def term_queries(kind: Kind, ids: dict[str, int]) -> dict[str, dict[str, str]]:
    found = {
        "nothing": {},
        "all": {"hide_empty": "0"},
        "search": {"search": f"{kind.name} 12"},
        "search of all": {"search": f"{kind.name} 17", "hide_empty": "0"},
        "include": {"include": "100010,100020", "hide_empty": "0"},
        "exclude": {"exclude": "100010", "hide_empty": "0"},
        "post": {"post": "200010"},
        "event": {"event": "200010"},
        "slug": {"slug": f"{kind.name}-7", "hide_empty": "0"},
    }
    parents = {"parent": {"parent": str(FIRST + 2)}, "top": {"parent": "0", "hide_empty": "0"}}
    return found | (parents if kind is CATEGORY else {})


async def explained(store: Store, kind: Kind, values: dict[str, str], caller: Caller) -> dict[str, Any]:
    """What the server says of the two commands that a list sends: of its page, and of its total."""
    # Bounds of an index may be dates that no calendar has.
    lenient = CodecOptions[dict[str, Any]](datetime_conversion=DatetimeConversion.DATETIME_AUTO)
    query = load(kind.query_schema, values, store.site)
    asked = await store.lists.translate(kind, query, caller)
    wanted = asked.filter
    find = {"find": kind.plural, "filter": wanted, "sort": dict(asked.sort), "limit": query["per_page"]}
    find |= {"hint": asked.hint} if asked.hint else {}
    group = {"$group": {"_id": 1, "n": {"$sum": 1}}}
    count = {"aggregate": kind.plural, "pipeline": [{"$match": wanted}, group], "cursor": {}}
    said = {}
    # The total of everything has nothing to be found by.
    for name, command in (("page", find), ("total", count)) if wanted else (("page", find),):
        said[name] = await store.database.command(
            {"explain": command, "verbosity": "executionStats"}, codec_options=lenient
        )
    return said


def parts(said: Any) -> Iterator[dict[str, Any]]:
    """Every object in an explanation, however deep."""
    if isinstance(said, dict):
        yield said
        for value in said.values():
            yield from parts(value)
    elif isinstance(said, list):
        for value in said:
            yield from parts(value)


def plans(said: dict[str, Any]) -> list[dict[str, Any]]:
    return [part for found in parts(said) if (part := found.get("winningPlan"))]


def stages(plan: dict[str, Any]) -> list[str]:
    return [str(part["stage"]) for part in parts(plan) if "stage" in part]


def used(plan: dict[str, Any]) -> str:
    names = [str(part["indexName"]) for part in parts(plan) if "indexName" in part]
    return "+".join(dict.fromkeys(names)) or "none"


def work(said: dict[str, Any]) -> tuple[int, int]:
    """Documents read, and documents that passed."""
    stats = next(found["executionStats"] for found in parts(said) if "executionStats" in found)
    return stats["totalDocsExamined"], stats["nReturned"]


@every_kind
async def test_no_list_reads_its_whole_collection(filled: Filled, kind: Kind) -> None:
    wrong: list[Any] = []
    for caller, who in CALLERS.items():
        for name, values in queries(kind, filled.ids, caller).items():
            for command, said in (await explained(filled.store, kind, values, who)).items():
                found = plans(said)
                assert found, said
                if any("COLLSCAN" in stages(plan) for plan in found):
                    wrong.append((caller, name, command, values))
    assert not wrong, "\n" + "\n".join(map(str, wrong))


async def test_selective_event_filters_read_few_events(filled: Filled) -> None:
    store, wrong = filled.store, list[Any]()
    for caller, who in CALLERS.items():
        asked = queries(EVENT, filled.ids, caller)
        for name in sorted(SELECTIVE & asked.keys()):
            said = await explained(store, EVENT, asked[name], who)
            (read, returned), (counted, _) = work(said["page"]), work(said["total"])
            total = (await store.page(EVENT, load(EVENT.query_schema, asked[name], store.site), who)).total
            assert total > 0 or name == "unknown word", (caller, name)
            # A page may be found by sorting all that match; never by reading much that does not.
            most = 3 * total + 20
            if read > most or counted > most:
                by = {command: used(plans(one)[0]) for command, one in said.items()}
                wrong.append(
                    (caller, name, f"{total} match, page reads {read} for {returned}, total {counted}", by)
                )
    assert not wrong, "\n" + "\n".join(map(str, wrong))


@pytest.mark.parametrize("kind", POSTS, ids=named)
async def test_page_in_any_order_reads_little_more_than_itself(filled: Filled, kind: Kind) -> None:
    wrong: list[Any] = []
    for caller, who in CALLERS.items():
        for name, values in queries(kind, filled.ids, caller).items():
            if values.keys() <= {"orderby", "order"}:
                said = (await explained(filled.store, kind, values, who))["page"]
                read, returned = work(said)
                if read > 3 * returned + 20:
                    wrong.append((caller, name, f"reads {read} for {returned}", used(plans(said)[0])))
    assert not wrong, "\n" + "\n".join(map(str, wrong))


# What else the store does


@pytest.fixture
async def profiled(filled: Filled) -> AsyncIterator[Filled]:
    """A full store whose server writes down every command."""
    database = filled.store.database
    await database.command("profile", 2)
    yield filled
    await database.command("profile", 0)
    await database["system.profile"].drop()


async def whole_scans(store: Store, most: int) -> list[str]:
    """Commands that read a whole collection, or far more than they answered or changed."""
    names = [f"{store.database.name}.{name}" for name in INDEXES]
    wrong: list[Any] = []
    async for row in store.database["system.profile"].find({"ns": {"$in": names}}):
        touched = row.get("nreturned", 0) + row.get("nMatched", 0) + row.get("ndeleted", 0)
        read = row.get("docsExamined", 0)
        asked = row.get("originatingCommand", row["command"]).get("pipeline", [{}])[0]
        if asked == {"$match": {}} or "$changeStream" in asked:  # every record; the tail of the log
            continue
        if "COLLSCAN" in row.get("planSummary", "") or read > 3 * touched + most:
            command = {
                key: row["command"].get(key)
                for key in ("find", "filter", "q", "query", "pipeline", "key", "sort")
            }
            shown = {key: value for key, value in command.items() if value is not None}
            wrong.append(f"{row['op']} {row['ns']} {row.get('planSummary')} reads {read}: {shown}"[:400])
    return sorted(set(wrong))


async def test_reading_and_writing_one_record_reads_few(profiled: Filled) -> None:
    store, ids = profiled.store, profiled.ids
    for kind in KINDS:
        data = load(kind.body_schema, dict(kind.example) | {kind.name_field: f"New {kind.name}"}, store.site)
        record = await store.create(kind, data, EVERYBODY)
        await store.create(kind, data | {"slug": "new"}, EVERYBODY)
        await store.head(kind, record["_id"], EVERYBODY, None)
        await store.head(kind, record["slug"], EVERYBODY, None)
        await store.find_many(kind, [record["_id"]])
        changes = load(kind.body_schema, {kind.name_field: f"Renamed {kind.name}"}, store.site, partial=True)
        await store.update(kind, record["_id"], changes, EVERYBODY)
        await store.delete(kind, record["_id"], EVERYBODY)
    child = load(CATEGORY.body_schema, {"name": "Child", "parent": ids["category"]}, store.site)
    made = await store.create(CATEGORY, child, EVERYBODY)
    await store.update(CATEGORY, made["_id"], {"parent": 0}, EVERYBODY)
    links = {
        "venue": [ids["venue"]],
        "organizer": [ids["organizer"]],
        "tags": ["tag 5"],
        "categories": ["Newest"],
    }
    event = await store.create(
        EVENT, load(EVENT.body_schema, dict(EVENT.example) | links, store.site), AUTHOR
    )
    await store.update(EVENT, event["_id"], {"post_parent": ids["event"], "tags": []}, AUTHOR)
    await store.maintain()
    await raise_id_counters(store.database)
    token = await store.tokens.create("someone", Role.EDITOR)
    assert await store.tokens.caller(token) is not None
    wrong = await whole_scans(store, 60)
    assert not wrong, "\n" + "\n".join(wrong)


@every_kind
async def test_nothing_that_a_list_asks_on_its_way_reads_a_whole_collection(
    profiled: Filled, kind: Kind
) -> None:
    store = profiled.store
    for caller, who in CALLERS.items():
        for values in queries(kind, profiled.ids, caller).values():
            await store.page(kind, load(kind.query_schema, values, store.site), who)
    wrong = await whole_scans(store, 10_000)
    assert not wrong, "\n" + "\n".join(wrong)
