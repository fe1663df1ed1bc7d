"""A service dies at every point of a request that writes several documents."""

from __future__ import annotations

import pytest

from tests.crashing import operations
from tests.crashing.driver import Driver

pytestmark = pytest.mark.slow

LINKED = {"insert venues", "insert organizers", "insert categories", "insert tags", "commitTransaction"}
TREE = {"insert fanout_jobs", "update counters", "commitTransaction"}
OPERATIONS = [
    (operations.EventWithLinks, 18, LINKED | {"insert events"}),
    (operations.LinksOfEvent, 14, LINKED | {"update events"}),
    (operations.CategoryDeletion, 18, TREE | {"findAndModify categories", "insert removed_terms"}),
    (operations.TagDeletion, 10, TREE | {"findAndModify tags", "insert removed_terms"}),
    (operations.CategoryMove, 14, TREE | {"update categories"}),
    (operations.VenueSlug, 8, {"update venues", "insert fanout_jobs", "commitTransaction"}),
    (operations.VenueDeletion, 7, {"update venues", "insert fanout_jobs", "commitTransaction"}),
    (operations.EventTrash, 6, {"update events"}),
    (operations.EventRestore, 6, {"update events"}),
]
"""How many deaths there are at least, and the commands of the request itself that must be among them; which
of the others are is not the same in every run, since the change log follows in the background."""


@pytest.mark.parametrize(
    ("operation", "deaths", "commands"), OPERATIONS, ids=[one[0].__name__ for one in OPERATIONS]
)
async def test_request(
    driver: Driver, operation: type[operations.Numbered], deaths: int, commands: set[str]
) -> None:
    await driver.die_everywhere(operation())
    assert driver.victims.seen.total() >= deaths
    assert driver.victims.seen.keys() >= commands, driver.victims.seen
