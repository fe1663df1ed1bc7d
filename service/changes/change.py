"""Changes to records, as they are read from the change stream."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from bson import Timestamp

from schemas import EVENT, KINDS
from service.changes.link_states import Link, Transition, links_of, transitions_of
from service.changes.list_fields import LINKS, LIST_FIELDS, PLAIN, ListFields
from service.changes.restores import MARKER

REMOVED = "removed"
REMOVED_TERMS = "removed_terms"
"""Collection of the terms that were deleted, in case the change log must be repaired."""
ACTIONS = {"insert": "created", "update": "changed", "delete": REMOVED}
"""Operation of the change stream -> action of the change log."""
ChangeEvent = Mapping[str, Any]
"""A document of the change stream."""


class Change(NamedTuple):
    """One write to one record."""

    at: Timestamp
    plural: str
    id: int
    action: str
    """created, changed, trashed, restored (from the trash) or removed; empty for other writes, which services
    never do."""
    touched: frozenset[str] | None = None
    """The top-level fields that an update has set or removed; None for other writes."""
    was: ListFields | None = None
    new: ListFields | None = None
    """Its list fields before and after, if they are known."""
    links: frozenset[Link] = frozenset()
    """Every record that an event was or is linked to."""
    transitions: Mapping[Link, Transition] = MappingProxyType({})
    """How it changes the usage counters of linked records, if the links are known."""

    @property
    def is_counters_only(self) -> bool:
        """Whether it has changed nothing but usage counters."""
        return self.touched is not None and self.touched <= {"events"}

    @property
    def is_listed(self) -> bool:
        """Whether lists of events depend on it."""
        return self.plural == EVENT.plural and (
            self.touched is None or not LIST_FIELDS.isdisjoint(self.touched)
        )

    @property
    def is_shown(self) -> bool:
        """Whether it changes what the record's readers see: all such updates increment the version."""
        return self.action != "changed" or "version" in (self.touched or ())

    @property
    def is_move(self) -> bool:
        """Whether a category got other ancestors, so that events enter and leave lists without a change."""
        return "ancestors" in (self.touched or ())

    @property
    def is_logged(self) -> bool:
        return bool(self.action) and (self.is_shown or self.is_move)


def parse(change_event: ChangeEvent) -> Change:
    """Parse a change. If somebody has made it by hand, the list fields may be unknown."""
    operation, plural = change_event["operationType"], change_event["ns"]["coll"]
    touched = _touched_by(change_event) if operation == "update" else None
    was, new = _list_fields(change_event)
    links, transitions = frozenset[Link](), dict[Link, Transition]()
    if plural == EVENT.plural and new is not None:
        try:
            links, transitions = links_of(was or {}) | links_of(new), transitions_of(was, new)
            _require_times(was or new, new)
        except (KeyError, TypeError, AttributeError):
            was = new = None
    id = change_event.get("documentKey", {}).get("_id", 0)
    action = _update_action(was, new) if operation == "update" else ACTIONS.get(operation, "")
    return Change(change_event["clusterTime"], plural, id, action, touched, was, new, links, transitions)


def _list_fields(change_event: ChangeEvent) -> tuple[ListFields | None, ListFields | None]:
    """The list fields before and after a change, if it is the creation of an event, or an update that
    reports them."""
    if change_event["operationType"] == "insert" and change_event["ns"]["coll"] == EVENT.plural:
        return None, change_event["fullDocument"]
    last = change_event.get("updateDescription", {}).get("updatedFields", {}).get("last_change")
    was, now = (last.get(name) if isinstance(last, dict) else None for name in ("was", "now"))
    return (was, was | now) if isinstance(was, dict) and isinstance(now, dict) else (None, None)


def _require_times(*states: ListFields) -> None:
    """Raise TypeError unless an event has a start and an end: another program may have written it."""
    times = (state.get(name) for state in states for name in ("start_utc", "end_utc"))
    if not all(isinstance(time, datetime) for time in times):
        raise TypeError


def _update_action(was: ListFields | None, new: ListFields | None) -> str:
    before, after = (was or {}).get("status"), (new or {}).get("status")
    if before == after:
        return "changed"
    return "trashed" if after == "trash" else "restored" if before == "trash" else "changed"


def _touched_by(change_event: ChangeEvent) -> frozenset[str]:
    """The top-level fields that an update has set or removed."""
    update = change_event["updateDescription"]
    names = [*change_event["touched"], *update["removedFields"]]
    names += [array["field"] for array in update.get("truncatedArrays", ())]
    return frozenset(name.partition(".")[0] for name in names)


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
