"""Import keys: two imports of the same lines store each of them once."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

import pytest
from pymongo.errors import WriteError

from schemas import CATEGORY, EVENT, Kind
from schemas.caller import EVERYBODY
from schemas.errors import Unavailable
from service.imports.imported import ImportedRecords
from service.imports.ndjson.lines import ImportLine, ImportRow, parse_lines
from service.imports.ndjson.rows import LineResults, import_rows
from service.mongo.bulk_writes import insert_each
from service.store import Store
from tests.checker import agrees
from tests.conftest import Api
from tests.samples import TIMES


def rows_of(store: Store, number: int = 5) -> list[ImportRow]:
    return parsed(store, EVENT, [{"title": f"Event {at}", "tags": ["one"], **TIMES} for at in range(number)])


def parsed(store: Store, kind: Kind, bodies: list[dict[str, Any]]) -> list[ImportRow]:
    lines = [ImportLine(at, json.dumps(body).encode(), bytes([at])) for at, body in enumerate(bodies)]
    rows, refused = parse_lines(lines, kind, store.site, ignore_unknown=False)
    assert not refused
    return rows


async def imported(store: Store, rows: list[ImportRow], kind: Kind = EVENT) -> LineResults:
    return await import_rows(store.creator, kind, EVERYBODY, rows)


async def test_lines_are_imported_once(store: Store) -> None:
    rows = rows_of(store)
    assert await imported(store, rows) == dict.fromkeys(range(5), "new")
    assert await imported(store, rows) == dict.fromkeys(range(5), "same")
    known = set(
        await ImportedRecords(store.database).find(EVENT, [*(row.fingerprint for row in rows), b"other"])
    )
    assert known == {row.fingerprint for row in rows}
    await agrees(store)


async def test_of_categories_that_are_stored_together_only_those_of_before_are_the_same(api: Api) -> None:
    parent = await api.made("categories", name="Music")
    names = ("jazz", "blues", "folk")
    bodies = [{"name": name, "slug": name, "parent": parent["id"]} for name in names]
    rows = parsed(api.store, CATEGORY, bodies)
    assert await imported(api.store, rows[1:2], CATEGORY) == {1: "new"}
    assert await imported(api.store, rows, CATEGORY) == {0: "new", 1: "same", 2: "new"}
    assert await api.store.database["categories"].count_documents({}) == 4
    await agrees(api.store)


async def test_two_imports_at_once_store_each_line_once(pair: tuple[Api, Api]) -> None:
    rows = rows_of(pair[0].store, 40)
    parts = (rows[:30], rows[10:], rows[::-1])
    done = await asyncio.gather(*(imported(pair[at % 2].store, part) for at, part in enumerate(parts)))
    results = Counter(result for one in done for result in one.values())
    assert results == {"new": 40, "same": 60}
    assert await pair[0].store.database["events"].count_documents({}) == 40
    await agrees(pair[0].store)


async def test_a_line_that_the_database_refuses_can_be_imported_later(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_of(store)

    async def refuses_one(collection: Any, rows: Any, *session: Any) -> dict[int, Exception]:
        bad = [row for row in rows if row.get("title") == "Event 2"]
        await insert_each(collection, [row for row in rows if row not in bad], *session)
        return {row["_id"]: WriteError("refused") for row in bad}

    monkeypatch.setattr("service.store.records.building.insert_each", refuses_one)
    results = await imported(store, rows)
    assert isinstance(results.pop(2), Unavailable)
    assert results == dict.fromkeys((0, 1, 3, 4), "new")
    monkeypatch.undo()
    assert await imported(store, rows) == dict.fromkeys((0, 1, 3, 4), "same") | {2: "new"}
