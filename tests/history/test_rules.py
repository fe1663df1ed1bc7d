"""The rules of the checker notice what they should, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.history.checks import differences, wrong_copies, wrong_counts
from tests.history.entries import Chain, Creation
from tests.history.recording import History
from tests.history.services import make_services
from tests.history.snapshot import Snapshot

KEY = ("events", 1, "excerpt")


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    one = History(tmp_path / "history.jsonl")
    yield one
    one.close()


def test_a_value_must_not_go_back(history: History) -> None:
    early = history.tick()
    history.rises(KEY, 2, history.tick())
    history.rises(KEY, 1, early)
    assert not history.violations, "both were asked for at the same time"
    history.rises(KEY, 1, history.tick())
    assert "goes back from 2 to 1" in history.violations[0]


def test_an_unknown_outcome_allows_both_values_until_the_next_acknowledgement(history: History) -> None:
    history.register(KEY, "old")
    history.begin(KEY, "new")
    history.saw(KEY, "something else", history.tick())
    history.end(KEY, "new", "unknown")
    for value in ("old", "new"):
        history.saw(KEY, value, history.tick())
    assert not history.violations
    history.begin(KEY, "newest")
    history.end(KEY, "newest", "acknowledged")
    history.saw(KEY, "new", history.tick())
    assert "shows 'new', acknowledged 'newest'" in history.violations[0]


def test_a_chain_must_not_branch(history: History) -> None:
    history.chains[1] = Chain()
    for text in ("start 1", "start 1 2"):
        history.extends(1, text, history.tick())
    assert not history.violations
    history.extends(1, "start 1 3", history.tick())
    history.extends(1, "start 1", history.tick())
    assert len(history.violations) == 2


def record(id: int, **more: Any) -> dict[str, Any]:
    return {"id": id, "slug": f"slug-{id}", "status": "publish"} | more


def event(id: int, **more: Any) -> dict[str, Any]:
    links: dict[str, Any] = {"venue": [], "organizer": [], "categories": [], "tags": []}
    return record(id, **{"title": f"Event {id}", "description": "start"} | links | more)


def snapshot(tmp_path: Path, **kinds: list[dict[str, Any]]) -> Snapshot:
    (service, _) = make_services(tmp_path, "")
    plurals = ("events", "venues", "organizers", "categories", "tags")
    return Snapshot(service, {name: {one["id"]: one for one in kinds.get(name, [])} for name in plurals})


def sent(history: History, *events: dict[str, Any], **more: Any) -> None:
    title = events[0]["title"] if events else "Event 1"
    history.creations.append(Creation(title, acknowledged=list(events), **more))


def test_creations_that_are_lost_doubled_or_unexpected(history: History, tmp_path: Path) -> None:
    sent(history, event(1))
    assert not [*differences(history, snapshot(tmp_path, events=[event(1)]))]
    assert "is lost" in next(differences(history, snapshot(tmp_path)))
    twice = snapshot(tmp_path, events=[event(1), event(2, title="Event 1")])
    assert "exists 2 times" in next(differences(history, twice))
    strange = snapshot(tmp_path, events=[event(1), event(3)])
    assert "was never sent" in next(differences(history, strange))


def test_an_event_without_its_venue_and_a_venue_without_its_event(history: History, tmp_path: Path) -> None:
    sent(history, hall="Hall 1")
    hall = record(9, venue="Hall 1")
    for shown in ({}, {"events": [event(1)], "venues": [hall]}):
        assert not [*differences(history, snapshot(tmp_path, **shown))]
    for shown in ({"events": [event(1)]}, {"venues": [hall]}):
        assert "'Hall 1' exists" in next(differences(history, snapshot(tmp_path, **shown)))


def test_tokens_of_conditional_updates(history: History, tmp_path: Path) -> None:
    sent(history, event(1))
    history.chains[1] = Chain()
    history.chains[1].acknowledged = ["a", "b"]
    history.chains[1].refused = ["c"]
    shown = snapshot(tmp_path, events=[event(1, description="start a a c")])
    found = "\n".join(differences(history, shown))
    assert all(
        part in found for part in ("b was acknowledged and is lost", "c was refused", "a was applied 2")
    )


def test_the_tree_slugs_copies_and_counts(history: History, tmp_path: Path) -> None:
    branches = [record(1, name="A", parent=2, count=1), record(2, name="B", parent=1, count=0)]
    shown = snapshot(tmp_path, categories=branches)
    assert len([*differences(history, shown)]) == 2, "both are in the cycle"
    assert "counts 1, but 0 events" in next(wrong_counts(shown))
    same = [record(1, name="x"), record(2, name="y", slug="slug-1")]
    assert "slug 'slug-1' 2 times" in next(differences(history, snapshot(tmp_path, tags=same)))
    old = event(1, tags=[{"id": 1, "name": "old"}])
    assert "('old', 'x')" in next(wrong_copies(snapshot(tmp_path, events=[old], tags=same)))
