"""Parses the change stream: what was done to which record, for the change log and the usage counters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from bson import Timestamp

from schemas import EVENT
from service.changes.event_changes import EventChange, Facts, parse, touched_by

REMOVED = "removed"
REMOVED_TERMS = "removed_terms"
"""Collection of the terms that were deleted, in case the change log must be repaired."""
ACTIONS = {"insert": "created", "update": "changed", "delete": REMOVED}
"""Operation of the change stream -> action of the change log."""


class RecordChange(NamedTuple):
    """One write to one record of any kind."""

    at: Timestamp
    plural: str
    id: int
    action: str
    """created, changed, trashed, restored or removed."""
    touched: frozenset[str] = frozenset()
    """The fields that an update has changed."""
    was: Facts | None = None
    now: Facts | None = None
    """If an update reports them: the facts before it, and those that it has changed."""
    event: EventChange | None = None
    """The same change to an event as lists see it."""

    @property
    def is_shown(self) -> bool:
        """Whether it changes what the record's readers see: all such updates increment the version."""
        return self.action != "changed" or "version" in self.touched

    @property
    def is_move(self) -> bool:
        """Whether a category got other ancestors, so that events enter and leave lists without a change."""
        return "ancestors" in self.touched


def parse_record(said: Mapping[str, Any], event: EventChange | None = None) -> RecordChange | None:
    """Parse a change; None if nothing is to be logged or counted."""
    if (action := ACTIONS.get(said["operationType"])) is None:
        return None
    at, plural, id = said["clusterTime"], said["ns"]["coll"], said["documentKey"]["_id"]
    if said["operationType"] != "update":
        return RecordChange(at, plural, id, action, event=event)
    last = said["updateDescription"].get("updatedFields", {}).get("last_change")
    was, now = (last.get(name) if isinstance(last, dict) else None for name in ("was", "now"))
    if not isinstance(was, dict) or not isinstance(now, dict):  # made by hand, or not told
        was = now = None
    change = RecordChange(at, plural, id, _action(was, now), touched_by(said), was, now, event)
    return change if change.is_shown or change.is_move else None


def _action(was: Facts | None, now: Facts | None) -> str:
    if was is None or now is None or "status" not in now:
        return "changed"
    if now["status"] == "trash":
        return "trashed"
    return "restored" if was["status"] == "trash" else "changed"


def parse_event(said: Mapping[str, Any]) -> EventChange | None:
    """The change to an event; None for other kinds, and if no list depends on it."""
    if said["ns"]["coll"] != EVENT.plural:
        return None
    change = parse(said)
    return None if change.touched == frozenset() else change
