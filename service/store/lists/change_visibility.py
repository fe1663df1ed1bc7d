"""Decides what a row of the change log is for a caller, by what they may see and by their filter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from schemas.caller import Caller
from schemas.kind import Document
from service.changes.change import REMOVED
from service.changes.list_fields import LINKS
from service.mongo.conditions import fields_of, matches
from service.store.lists.query import ListQuery, can_evaluate

Head = Mapping[str, Any]
NO_FILTER = ListQuery("", [], [])
GONE = ("trashed", REMOVED)
"""Actions after which nobody has a record."""


@dataclass(frozen=True)
class ChangeVisibility:
    """What the rows of one kind are for one caller."""

    caller: Caller
    filter: ListQuery = NO_FILTER
    """The filter of events; other kinds have none."""
    shows_trash: bool = False
    """Whether the filter asks for records in the trash."""

    def sees(self, record: Head | None) -> bool:
        is_shown = record is not None and (self.shows_trash or record.get("status") != "trash")
        return is_shown and self.caller.sees(record or {})

    def action(self, row: Document, head: Head | None, *, is_matching: bool) -> str | None:
        """The action for the caller; None if the row does not concern them. Only the row that makes a record
        leave says so; if the record has changed again since then, later rows say the rest."""
        if is_matching:
            return self._action_when_matching(row)
        if row.get("is_lost"):
            return "left" if self.sees(head) else REMOVED
        if row["action"] == REMOVED:
            return REMOVED
        was, now = row.get("was"), row.get("was", {}) | row.get("now", {})
        if was is not None and self.sees(was) and not self.sees(now):
            return self._action_when_hidden(row, was)
        return "left" if self._has_left(row, head, was, now) else None

    def _action_when_matching(self, row: Document) -> str:
        if row["action"] in GONE:  # it has come back since
            return "changed"
        was_hidden = "was" in row and not self.sees(row["was"])
        return "created" if row["action"] == "changed" and was_hidden else str(row["action"])

    def _action_when_hidden(self, row: Document, was: Document) -> str | None:
        # If the filter depends on linked records, it may have matched with their state of that time: then the
        # record is always reported as gone. So it is if time may have passed a date of the filter.
        can_tell = self._can_evaluate_past and not self.filter.dates
        if can_tell and not matches(self.filter.all_conditions, was):
            return None
        return row["action"] if row["action"] in GONE else REMOVED

    def _has_left(self, row: Document, head: Head | None, was: Document | None, now: Document) -> bool:
        """Whether a change has made a record leave the filter. If that is unclear, it is reported as long as
        the caller sees the record: otherwise the change that hid it is reported."""
        if row["action"] == "created":
            return False
        if was is None or not self._can_evaluate_past:
            return self.sees(head) and bool(self.filter.fields & set(row["touched"]))
        conditions = self.filter.all_conditions
        return self.sees(was) and matches(conditions, was) and not matches(conditions, now)

    @cached_property
    def _can_evaluate_past(self) -> bool:
        """Whether the fields of a record alone decide if it matched at any time: linked records may have
        changed since, and with them what the filter means."""
        is_independent = not self.filter.resolved and not fields_of(self.filter.conditions) & LINKS.keys()
        return is_independent and can_evaluate(self.filter.all_conditions)
