"""Reads that go to a new primary: before it commits a write of its own, acknowledged ones may be missing."""

from __future__ import annotations

from typing import Any

import pytest

from service.store.links import usage
from service.store.search import Vocabulary
from tests.checker import differences
from tests.conftest import Api
from tests.test_change_feed import pretend_election

Pair = tuple[Api, Api]


async def test_events_of_a_record_that_is_missing_at_first_are_counted(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, find, stale = api.store, usage.find_in_many, [True]
    with monkeypatch.context() as paused:
        paused.setattr(store.log, "update_soon", lambda: None)
        await api.event("Fair", venue={"venue": "Hall"}, tags=["music"])

    async def find_nothing_at_first(*asked: Any) -> Any:
        if not stale:
            return await find(*asked)
        stale.pop()
        pretend_election(store.feed)
        return []

    monkeypatch.setattr(usage, "find_in_many", find_nothing_at_first)
    await store.log.update()
    assert await differences(store) == []


async def test_a_word_that_is_missing_at_first_gets_no_other_number(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = pair
    await two.event("Zebra")
    stored, stale = Vocabulary._stored, [True, True]  # before the insertion, which is refused, and after it

    async def nothing_at_first(self: Vocabulary, words: list[str]) -> dict[str, int]:
        return {} if stale and stale.pop() else await stored(self, words)

    monkeypatch.setattr(Vocabulary, "_stored", nothing_at_first)
    body = {"title": "Zebra", "start_date": "2027-06-01", "end_date": "2027-06-01"}
    assert [(await one.post("/events", body))[0] for _ in range(2)] == [503, 201]
    assert len(await two.ids("events", search="zebra")) == 2
