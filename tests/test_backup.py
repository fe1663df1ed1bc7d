"""`kalends dump` and `kalends restore`: what comes back is the same, whatever has happened meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import bson
import pytest
from bson import json_util
from bson.raw_bson import RawBSONDocument
from pymongo.errors import PyMongoError

from schemas.caller import Role
from schemas.site import Site
from schemas.values.text_normalization import trigrams
from service.backup import switching
from service.backup.contents import CONTENTS, NOT_DUMPED, SECRETS, Header
from service.backup.format import BackupError, Batch, DumpWriter
from service.changes.restores import FRESH_SECONDS
from service.migrations import FORM, FormUnknown
from service.mongo.indexes import INDEXES
from service.store import Store, open_store
from service.webhooks.subscriptions import Subscription, Webhooks
from tests.backups import Backups, backups_of, everything_shown, fill_all
from tests.checker import agrees
from tests.conftest import Api, MakeApi
from tests.test_migrations import OLD

pytestmark = pytest.mark.slow


@pytest.fixture
async def backups(
    store: Store,
    mongodb_uri: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    aiohttp_client: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Backups]:
    monkeypatch.setattr(switching, "SETTLE_SECONDS", FRESH_SECONDS + 0.1)  # nothing takes long here
    async with backups_of(store, mongodb_uri, tmp_path, capsys, aiohttp_client) as made:
        yield made


# What comes back


async def test_everything_is_shown_as_before(api: Api, make_api: MakeApi, backups: Backups) -> None:
    await fill_all(api)
    token = await api.store.tokens.create("Admin", Role.ADMIN)
    await agrees(api.store)
    public = await make_api(auth="token")
    admin = Api(public.client, public.store, token)
    before = [await everything_shown(public), await everything_shown(admin)]
    path = await backups.dump(with_tokens=True)
    async with backups.restored(path) as restored:
        after = [await everything_shown(restored)]
        after.append(await everything_shown(Api(restored.client, restored.store, token)))
        await agrees(restored.store)
    for one, other in zip(before, after, strict=True):
        assert {status for status, *_ in one.values()} >= {200, 410}
        assert {path: shown for path, shown in other.items() if shown != one[path]} == {}
        assert one.keys() == other.keys()


async def test_what_is_not_shown_comes_back_too(api: Api, backups: Backups) -> None:
    await fill_all(api)
    protected = await api.event("Secret", password="sesame", import_key=None)
    trashed = await api.event("Old news")
    await api.delete(f"/events/{trashed['id']}")
    words = {f"word{number}": 10_000 + number for number in range(2500)}
    many = [{"_id": word, "n": number, "grams": trigrams(word)} for word, number in words.items()]
    await api.store.database["words"].insert_many(many)
    await api.store.database["counters"].update_one({"_id": "word"}, {"$max": {"n": 12_500}}, upsert=True)
    counters = {row["_id"]: row["n"] async for row in api.store.database["counters"].find()}
    path = await backups.dump()
    async with backups.restored(path) as restored:
        stored = restored.store.database
        for name in ("words", "undo", "removed_terms"):
            rows = [
                await one[name].find().sort("_id", 1).to_list(None) for one in (api.store.database, stored)
            ]
            assert rows[0] == rows[1], name
        for name, models in INDEXES.items():
            wanted = {"_id_", *(model.document["name"] for model in models)}
            assert (await stored[name].index_information()).keys() == wanted
        after = {row["_id"]: row["n"] async for row in stored["counters"].find()}
        assert {space: after[space] >= highest for space, highest in counters.items()} == dict.fromkeys(
            counters, True
        )
        assert await restored.store.instance() == await api.store.instance()
        restored.token = await restored.store.tokens.create("Editor", Role.EDITOR)
        public = Api(restored.client, restored.store)
        address = f"/events/{protected['id']}"
        assert [(await public.get(address, password=one))[0] for one in ("wrong", "sesame")] == [403, 200]
        assert (await restored.patch(f"/events/{trashed['id']}", {"status": "publish"}))[0] == 200
        assert (await restored.event("Open sesame"))["id"] > max(protected["id"], trashed["id"])
        await agrees(restored.store)


async def test_every_collection_is_dumped_or_known_not_to_be(api: Api, backups: Backups) -> None:
    await fill_all(api)
    await api.store.tokens.create("Editor", Role.EDITOR)
    found = set(await api.store.database.list_collection_names())
    assert found <= {*CONTENTS, *SECRETS, *NOT_DUMPED}


async def test_tokens_and_webhooks_come_back_if_asked_for(api: Api, backups: Backups) -> None:
    token = await api.store.tokens.create("Viewer", Role.VIEWER)
    await Webhooks(api.store).add(Subscription("https://example.org/hook", "kinds=events"), "0a-1")
    path = await backups.dump(with_tokens=True)
    said = await backups.restore(path)
    assert "their receivers should read the lists again" in said
    async with open_store(backups.uri, backups.target, Site()) as restored:
        assert (await restored.tokens.caller(token) or pytest.fail("no caller")).role is Role.VIEWER
        (webhook,) = await Webhooks(restored).all()
        checkpoint = await restored.log.checkpoint()
        assert webhook["since"] == f"{checkpoint.log}-{checkpoint.number}"


async def test_without_tokens_those_of_the_same_calendar_stay(api: Api, backups: Backups) -> None:
    path = await backups.dump()
    token = await api.store.tokens.create("Viewer", Role.VIEWER)
    await backups.restore(path, into=backups.source, replace=True)
    assert await api.store.tokens.caller(token)
    # In another database this number may be that of another author.
    said = await backups.restore(path)
    assert "There are no access tokens" in said
    async with open_store(backups.uri, backups.target, Site()) as restored:
        assert await restored.tokens.list() == []
        assert (await restored.tokens.issue("New", Role.VIEWER)).id > 0


# In place of other records


async def test_a_damaged_identity_does_not_prevent_a_restore(api: Api, backups: Backups) -> None:
    kept = await api.event("Kept")
    path = await backups.dump()
    meta = api.store.database["meta"]
    row = await meta.find_one_and_update({"_id": "instance"}, {"$unset": {"uuid": ""}})
    try:
        await backups.restore(path, into=backups.source, replace=True)
    finally:
        await meta.replace_one({"_id": "instance"}, row)
    assert (await api.get(f"/events/{kept['id']}"))[1]["title"] == "Kept"


@pytest.mark.parametrize(("id", "field"), [("form", "number"), ("change_log", "at")])
async def test_a_dump_of_a_damaged_database_says_what_to_do(
    api: Api, backups: Backups, id: str, field: str
) -> None:
    meta = api.store.database["meta"]
    row = await meta.find_one_and_update({"_id": id}, {"$set": {field: "x"}})
    with pytest.raises((BackupError, FormUnknown), match="is damaged: run `kalends doctor --repair`"):
        await backups.dump()
    await meta.replace_one({"_id": id}, row)


async def test_records_are_only_replaced_if_told_so(api: Api, backups: Backups) -> None:
    kept = await api.event("Kept")
    path = await backups.dump()
    later = await api.event("Later", categories=["New"])
    with pytest.raises(BackupError, match=r"has events: .* --replace"):
        await backups.restore(path, into=backups.source)
    assert (await api.get(f"/events/{later['id']}"))[0] == 200
    _, page = await api.get("/changes")
    await backups.restore(path, into=backups.source, replace=True)
    assert (await api.get(f"/events/{later['id']}"))[0] == 404
    assert await api.ids("events", start_date="2000-01-01") == [kept["id"]]
    assert (await api.get("/changes", since=page["next"]))[0] == 410
    # Ids that were given after the dump are not given again.
    assert (await api.event("New"))["id"] > later["id"]
    await agrees(api.store)


async def test_a_database_with_tokens_is_not_empty(api: Api, backups: Backups) -> None:
    path = await backups.dump()
    async with open_store(backups.uri, backups.target, Site()) as other:
        await other.tokens.create("Somebody", Role.AUTHOR)
        with pytest.raises(BackupError, match="has tokens"):
            await backups.restore(path)
        await backups.restore(path, replace=True)
        assert await other.tokens.list() == []


async def test_a_version_that_is_given_again_has_another_tag(api: Api, backups: Backups) -> None:
    """A client that has read a version which the restore has undone does not get 304 for another one."""
    event = await api.event("One")
    address = f"/events/{event['id']}"
    path = await backups.dump()
    await api.patch(address, {"title": "Two"})
    tags = {}
    for shown in (
        address,
        f"{address}.ics",
        "/events?start_date=2000-01-01",
        "/events.ics?start_date=2000-01-01",
    ):
        await api.get(shown)
        tags[shown] = api.headers["ETag"]
    await backups.restore(path, into=backups.source, replace=True)
    await asyncio.sleep(1)  # times are stored in seconds
    assert (await api.patch(address, {"title": "Three"}))[0] == 200
    for shown, tag in tags.items():
        status, _ = await api.send("GET", shown, headers={"If-None-Match": tag})
        assert status == 200, shown
        assert "Three" in api.text


async def test_a_time_that_a_restore_has_undone_does_not_count(api: Api, backups: Backups) -> None:
    """Nor does a tag of the version, if another one has its number."""
    await asyncio.sleep(1)  # the service relies on times after its start, in seconds
    address = f"/events/{(await api.event('One'))['id']}"
    path = await backups.dump()
    await api.get(address)
    await asyncio.sleep(1)
    await api.patch(address, {"title": "Two"})
    await api.get(address)
    time, tag = api.headers["Last-Modified"], api.headers["ETag"]
    await backups.restore(path, into=backups.source, replace=True)
    for _ in range(2):
        assert (await api.send("GET", address, headers={"If-Modified-Since": time}))[0] == 200
        assert "One" in api.text
    await asyncio.sleep(1)
    assert (await api.patch(address, {"title": "Three"}))[0] == 200
    assert (await api.patch(address, {"title": "Four"}, headers={"If-Match": tag}))[0] == 412
    await api.get(address)
    time = api.headers["Last-Modified"]
    assert (await api.send("GET", address, headers={"If-Modified-Since": time}))[0] == 304


# Other versions


async def test_an_older_form_is_upgraded(backups: Backups, store: Store) -> None:
    path = backups.directory / "old.dump"
    rows: dict[str, list[RawBSONDocument]] = {}
    for line in OLD.read_text().splitlines():
        row = json_util.loads(line)
        rows.setdefault(row["collection"], []).append(RawBSONDocument(bson.encode(row["document"])))
    await write(path, store, form=1, collections=list(rows), rows=rows)
    await backups.restore(path)
    async with open_store(backups.uri, backups.target, Site()) as restored:
        assert await restored.database["events"].count_documents({}) == len(rows["events"])
        await agrees(restored)


async def test_a_newer_form_is_refused(backups: Backups, store: Store) -> None:
    path = backups.directory / "new.dump"
    await write(path, store, form=FORM + 1, collections=[], rows={})
    with pytest.raises(BackupError, match=f"stored form {FORM + 1}, made by Kalends 9.9; .* upgrade Kalends"):
        await backups.restore(path)


async def write(
    path: Path, store: Store, *, form: int, collections: list[str], rows: dict[str, list[RawBSONDocument]]
) -> None:
    instance = await store.database["meta"].find_one({"_id": "instance"}) or {}
    checkpoint = await store.log.checkpoint()
    header = Header(form, "9.9", store.site.now(), checkpoint.at, instance, collections)
    with path.open("wb") as file:
        writer = DumpWriter(file, header._asdict())
        for name, documents in rows.items():
            writer.add(Batch(name, documents))
        writer.end()


# While others write


async def test_a_dump_is_of_one_moment(pair: tuple[Api, Api], backups: Backups) -> None:
    acknowledged: list[str] = []
    is_over = asyncio.Event()

    async def write_on(api: Api, name: str) -> None:
        number = 0
        while not is_over.is_set():
            number += 1
            title = f"{name} {number}"
            event = await api.event(title, venue={"venue": f"Hall {title}"}, tags=[f"tag{number % 7}"])
            acknowledged.append(title)
            await api.patch(f"/venues/{event['venue']['id']}", {"venue": f"Renamed {title}"})
            if number % 3 == 0:
                await api.delete(f"/events/{event['id']}")

    writers = [asyncio.create_task(write_on(api, name)) for api in pair for name in ("a", "b", "c")]
    await asyncio.sleep(1)
    before = list(acknowledged)
    paths = [await backups.dump(f"{number}.dump") for number in range(3)]
    is_over.set()
    await asyncio.gather(*writers)
    assert before
    async with backups.restored(paths[-1]) as restored:
        titles = {row["title"] async for row in restored.store.database["events"].find({}, {"title": 1})}
        assert set(before) <= titles
        await agrees(restored.store)
        with suppress(PyMongoError):
            await restored.store.client.drop_database(backups.target)
