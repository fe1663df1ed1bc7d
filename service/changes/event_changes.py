"""Parses the change stream: which fields of an event that lists depend on have changed, and how."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from bson import Timestamp

from schemas import EVENT, KINDS
from schemas.dates import EPOCH
from schemas.event_representation import LINKED
from schemas.kind import Kind

Facts = Mapping[str, Any]
"""Fields of a record by name; a missing field is unknown."""
ACCESS = ("status", "author")
PLAIN = (
    *("_id", *ACCESS, "hide_from_listings", "locked", "post_parent", "featured", "ticketed"),
    *("start_utc", "end_utc", "date_utc", "modified_utc", "sort", "tok"),
)
LINKS = {
    field: ("_id", "version", *(("status", "author", "geo_lat") if kind.is_post else ()))
    for field, kind in LINKED.items()
}
FACTS = frozenset([*PLAIN, *LINKS])
"""Fields of an event that lists filter or sort by."""
SEARCHED = ("sort", "tok")
"""Fields that are not loaded with an event."""


Use = tuple[str, int]
"""A link field of events, and the id of a record linked there."""


class State(NamedTuple):
    """How an event counts for a linked record: its end if it is public, and if it is not in the trash."""

    publish_end: datetime | None = None
    live_end: datetime | None = None
    is_linked: bool = False


Step = tuple[State, State]
"""The state before and after a write."""


class EventChange(NamedTuple):
    """One write to one event. For some updates only the touched fields are known; if not even these are,
    anything may have changed."""

    at: Timestamp
    touched: frozenset[str] | None = None
    old: Facts | None = None
    new: Facts | None = None
    links: frozenset[tuple[str, int]] = frozenset()
    """Field and id of every record that the event was or is linked to."""
    steps: Mapping[Use, Step] = MappingProxyType({})
    """How it changes the usage counters of linked records, if the links are known."""


def steps_of(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> dict[Use, Step]:
    """The step of each record that an event has linked to before or after a write, if there is any."""
    before, after = _uses(old), _uses(new)
    pairs = {use: (before.get(use, State()), after.get(use, State())) for use in before | after}
    return {use: (was, now) for use, (was, now) in pairs.items() if was != now}


def _uses(event: Mapping[str, Any] | None) -> dict[Use, State]:
    """The state of each record that an event links to. Links of a protected event are not public."""
    if event is None:
        return {}
    is_public, is_live = event["status"] == "publish" and not event["locked"], event["status"] != "trash"

    def state(end: datetime) -> State:
        return State(end if is_public else None, end if is_live else None, is_linked=True)

    # Terms have no latest end: if only the end of an event moves, there is nothing to count in them.
    states = {True: state(event["end_utc"]), False: state(EPOCH)}
    return {
        (field, copy["_id"]): states[kind.is_post]
        for field, kind in LINKED.items()
        for copy in event.get(field) or ()
    }


def after_steps(counters: Mapping[str, Any], steps: Iterable[Step]) -> tuple[dict[str, Any], bool]:
    """The counters after some steps, and whether the latest ends are known: the event that had the latest one
    may have been removed."""
    counted, are_ends_known = dict(counters), True
    for was, now in steps:
        counted["publish"] += bool(now.publish_end) - bool(was.publish_end)
        for name in ("publish_end", "live_end"):
            before, after, latest = getattr(was, name), getattr(now, name), counted[name]
            if before and (after is None or after < before) and (latest is None or before >= latest):
                are_ends_known = False
            counted[name] = max(filter(None, (latest, after)), default=None)
    return counted, are_ends_known


def telling(kind: Kind, old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Additional data that an update stores, so that other processes know which lists the record left and
    entered: the change stream does not report unchanged fields."""
    if not kind.is_post:  # everybody sees terms
        return {}
    was, now = (facts_of(one) if kind is EVENT else access_of(one) for one in (old, new))
    changed = {name: value for name, value in now.items() if value != was[name]}
    # The version makes the value unique: the change stream does not report a value that stays the same.
    return {"last_change": {"version": old["version"] + 1, "was": was, "now": changed}}


def facts_of(event: Mapping[str, Any]) -> dict[str, Any]:
    """Extract these fields from a loaded event."""
    plain = {name: event.get(name) for name in PLAIN if name not in SEARCHED}
    return plain | {
        field: [{name: copy.get(name) for name in names} for copy in event.get(field) or ()]
        for field, names in LINKS.items()
    }


def access_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Extract the fields that decide who may see a record."""
    return {name: record.get(name) for name in ACCESS}


def parse(said: Mapping[str, Any]) -> EventChange:
    """Parse a change to an event. One that somebody has made by hand may be of any form."""
    try:
        return _parse(said)
    except (KeyError, TypeError, AttributeError):
        return EventChange(said["clusterTime"])


def _parse(said: Mapping[str, Any]) -> EventChange:
    at, operation = said["clusterTime"], said["operationType"]
    if operation == "insert":
        new = said["fullDocument"]
        return _known(at, None, None, {name: new.get(name) for name in FACTS})
    if operation != "update":
        return EventChange(at)
    touched = FACTS & touched_by(said)
    if (last := said["updateDescription"]["updatedFields"].get("last_change")) is None:
        return EventChange(at, touched)
    return _known(at, touched, last["was"], last["was"] | last["now"])


def _known(at: Timestamp, touched: frozenset[str] | None, old: Facts | None, new: Facts) -> EventChange:
    return EventChange(at, touched, old, new, links_of(old or {}) | links_of(new), steps_of(old, new))


def links_of(event: Facts) -> frozenset[tuple[str, int]]:
    return frozenset((field, copy["_id"]) for field in LINKS for copy in event.get(field) or ())


def touched_by(said: Mapping[str, Any]) -> frozenset[str]:
    """The top-level fields that an update has set or removed."""
    update = said["updateDescription"]
    names = [*said["touched"], *update["removedFields"]]
    names += [array["field"] for array in update.get("truncatedArrays", ())]
    return frozenset(name.partition(".")[0] for name in names)


def is_counters_only(said: Mapping[str, Any]) -> bool:
    """Whether an update has changed nothing but usage counters."""
    return said["operationType"] == "update" and touched_by(said) <= {"events"}


MARKER = "restore_under_way"
"""Id of a document in `meta` that exists while a restore replaces the records."""
PIPELINE: list[dict[str, Any]] = [
    {
        "$match": {
            "$or": [
                {"ns.coll": {"$in": [kind.plural for kind in KINDS]}},
                {"ns.coll": "meta", "documentKey._id": MARKER},
            ]
        }
    },
    {
        "$project": {
            **dict.fromkeys(("operationType", "clusterTime", "ns.coll", "documentKey._id"), 1),
            **dict.fromkeys(("updateDescription.removedFields", "updateDescription.truncatedArrays"), 1),
            "updateDescription.updatedFields.last_change": 1,
            **{f"fullDocument.{name}": 1 for name in PLAIN},
            **{f"fullDocument.{field}.{name}": 1 for field, names in LINKS.items() for name in names},
            "touched": {
                "$map": {
                    "input": {"$objectToArray": {"$ifNull": ["$updateDescription.updatedFields", {}]}},
                    "in": "$$this.k",
                }
            },
        }
    },
]
"""Filter and projection of the change stream: the server sends only what is needed."""
