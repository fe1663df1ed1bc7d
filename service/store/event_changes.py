"""Change feed entries: the fields of an event that lists depend on, before and after a change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from bson import Timestamp

from schemas.event_representation import LINKED

Facts = Mapping[str, Any]
"""Fields of a record by name; a missing field is unknown."""
PLAIN = (
    *("_id", "status", "hide_from_listings", "author", "locked", "post_parent", "featured", "ticketed"),
    *("start_utc", "end_utc", "date_utc", "modified_utc", "sort", "tok"),
)
LINKS = {
    field: ("_id", "status", "author", "geo_lat", "point") if kind.is_post else ("_id",)
    for field, kind in LINKED.items()
}
FACTS = frozenset([*PLAIN, *LINKS])
"""Fields of an event that lists filter or sort by."""
SEARCHED = ("sort", "tok")
"""Fields that are not loaded with an event."""


class Change(NamedTuple):
    """One write to one event. For some updates only the touched fields are known; if not even these are,
    anything may have changed."""

    at: Timestamp
    touched: frozenset[str] | None = None
    old: Facts | None = None
    new: Facts | None = None

    @property
    def is_known(self) -> bool:
        return self.new is not None


class Move(NamedTuple):
    """The effect of a change on a list: an event entered (1) or left (-1)."""

    at: Timestamp
    facts: Facts
    step: int


def telling(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Additional data that an update stores, so that other processes know which lists the event left and
    entered: the change stream does not report unchanged fields."""
    was, now = facts_of(old), facts_of(new)
    changed = {name: value for name, value in now.items() if value != was[name]}
    # The version makes the value unique: the change stream does not report a value that stays the same.
    return {"told": {"version": old["version"] + 1, "was": was, "now": changed}}


def facts_of(event: Mapping[str, Any]) -> dict[str, Any]:
    """Extract these fields from a loaded event."""
    plain = {name: event.get(name) for name in PLAIN if name not in SEARCHED}
    return plain | {
        field: [{name: copy.get(name) for name in names} for copy in event.get(field) or ()]
        for field, names in LINKS.items()
    }


def understood(said: Mapping[str, Any]) -> Change:
    """Parse a document of the change stream."""
    at, operation = said["clusterTime"], said["operationType"]
    if operation == "insert":
        new = said["fullDocument"]
        return Change(at, new={name: new.get(name) for name in FACTS})
    if operation != "update":
        return Change(at)
    update = said["updateDescription"]
    names = [*said["touched"], *update["removedFields"]]
    names += [array["field"] for array in update.get("truncatedArrays", ())]
    touched = FACTS.intersection(name.partition(".")[0] for name in names)
    if (told := update["updatedFields"].get("told")) is None:
        return Change(at, touched)
    return Change(at, touched, told["was"], told["was"] | told["now"])


PIPELINE: list[dict[str, Any]] = [
    {
        "$project": {
            **dict.fromkeys(("operationType", "clusterTime"), 1),
            **dict.fromkeys(("updateDescription.removedFields", "updateDescription.truncatedArrays"), 1),
            "updateDescription.updatedFields.told": 1,
            **{f"fullDocument.{name}": 1 for name in PLAIN},
            **{f"fullDocument.{field}.{name}": 1 for field, names in LINKS.items() for name in names},
            "touched": {
                "$map": {
                    "input": {"$objectToArray": {"$ifNull": ["$updateDescription.updatedFields", {}]}},
                    "in": "$$this.k",
                }
            },
        }
    }
]
"""Projection of the change stream: the server sends only what is needed."""
