"""The import ledger: two imports that have the same lines store each of them once, whoever comes first."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from pymongo.errors import WriteError

from schemas import EVENT
from schemas.caller import EVERYBODY
from schemas.errors import Unavailable
from service.ndjson import ImportLine, parse_lines
from service.store import Store
from service.store.records.drafting import Row
from service.store.records.importing import Bulk, Outcome, bulk
from tests.checker import agrees

TIMES = {"start_date": "2027-06-01 10:00:00", "end_date": "2027-06-01 12:00:00"}


def rows_of(store: Store, number: int = 5) -> list[Row]:
    bodies = [{"title": f"Event {at}", "tags": ["one"], **TIMES} for at in range(number)]
    lines = [ImportLine(at, json.dumps(body).encode(), bytes([at])) for at, body in enumerate(bodies)]
    rows, refused = parse_lines(lines, EVENT, store.site, ignore_unknown=False)
    assert not refused
    return rows


class Waiting(Bulk):
    """Waits before it stores the lines that it has claimed."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, EVENT, EVERYBODY)
        self.is_ready, self.may_go_on = asyncio.Event(), asyncio.Event()

    async def _insert_all(self, records: list[dict[str, Any]]) -> dict[int, Exception]:
        self.is_ready.set()
        await self.may_go_on.wait()
        return await super()._insert_all(records)


async def test_one_that_waited_stores_what_another_was_going_to(store: Store) -> None:
    rows = rows_of(store)
    slow = Waiting(store)
    storing = asyncio.create_task(slow.store(rows))
    await slow.is_ready.wait()
    async with bulk(store, EVENT, EVERYBODY) as other:
        slow.may_go_on.set()
        assert await storing == Outcome(imported=5)
        assert await other.store(rows) == Outcome(there=5)
    await alone(store, 5)


async def test_one_that_is_late_finds_its_records_stored(store: Store) -> None:
    rows = rows_of(store)
    slow = Waiting(store)
    storing = asyncio.create_task(slow.store(rows[:3]))
    await slow.is_ready.wait()
    async with bulk(store, EVENT, EVERYBODY) as other:
        assert await other.store(rows) == Outcome(imported=5)
    slow.may_go_on.set()
    assert await storing == Outcome(there=3)
    await alone(store, 5)


async def test_lines_that_another_has_begun_with_are_left_to_it(store: Store) -> None:
    rows = rows_of(store)
    slow = Waiting(store)
    async with bulk(store, EVENT, EVERYBODY) as other:
        storing = asyncio.create_task(slow.store(rows[:3]))
        await slow.is_ready.wait()
        assert await other.store(rows) == Outcome(imported=2, there=3)
    slow.may_go_on.set()
    assert await storing == Outcome(imported=3)
    await alone(store, 5)


async def test_a_line_that_the_database_refuses_can_be_imported_later(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rows = rows_of(store)
    async with bulk(store, EVENT, EVERYBODY) as way:
        stored = way._inserts.many

        async def some(plural: str, records: Sequence[dict[str, Any]]) -> dict[int, Exception]:
            refused = records[2]["_id"] if plural == "events" else None
            kept = [record for record in records if record["_id"] != refused]
            return await stored(plural, kept) | ({refused: WriteError("no room")} if refused else {})

        monkeypatch.setattr(way._inserts, "many", some)
        outcome = await way.store(rows)
    assert (outcome.imported, list(outcome.refused)) == (4, [2])
    assert isinstance(outcome.refused[2], Unavailable)
    assert "line 2 is not stored: no room" in caplog.text
    async with bulk(store, EVENT, EVERYBODY) as way:
        known = await way.ledger.known(row.mark for row in rows)
        assert known == {row.mark for row in rows} - {rows[2].mark}
        assert await way.store([rows[2]]) == Outcome(imported=1)
    await alone(store, 5)


async def alone(store: Store, number: int) -> None:
    """So many events, and nothing left to be done."""
    assert await store.database["events"].count_documents({}) == number
    assert await store.database["importers"].count_documents({}) == 0
    await agrees(store)
