"""Usage counters of venues, organizers and terms: numbers of events and their latest end, in each record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from schemas.event_representation import LINKED, is_locked
from schemas.kind import Kind
from service.store.debts import State, Use, UseChanges

UNUSED = {"publish": 0, "live": 0, "publish_end": None, "live_end": None, "plan": 0}


def uses(event: Mapping[str, Any] | None) -> dict[Use, State]:
    """(field, id) of each record that an event links to -> whether it counts as published, as live, and its
    end. Links of a protected event are not public: they count as live only."""
    if event is None:
        return {}
    is_public = event["status"] == "publish" and not is_locked(event)
    state = (is_public, event["status"] != "trash", event["end_utc"])
    return {(field, copy["_id"]): state for field in LINKED for copy in event.get(field, ())}


def changed_uses(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> UseChanges:
    nothing: State = (False, False, None)
    before, after = uses(old), uses(new)
    pairs = {use: (before.get(use, nothing), after.get(use, nothing)) for use in before | after}
    return {use: (was, now) for use, (was, now) in pairs.items() if was != now}


def has_end(use: Use) -> bool:
    """Whether the latest end is stored: only venues and organizers can be filtered by upcoming events."""
    return LINKED[use[0]].is_post


def was_cut(was: State, now: State) -> bool:
    """Whether a change may have lowered the latest end, so that it must be looked up."""
    if not was[1]:
        return False
    return now[0] < was[0] or now[1] < was[1] or now[2] is None or was[2] is None or now[2] < was[2]


@dataclass
class Step:
    """The change to the counters of one record."""

    published: int = 0
    live: int = 0
    publish_end: datetime | None = None
    live_end: datetime | None = None
    found: list[datetime | None] | None = None
    """The latest ends of public and of all events, if they had to be looked up."""

    def add(self, was: State, now: State, *, ends: bool) -> None:
        self.published += now[0] - was[0]
        self.live += now[1] - was[1]
        if ends and now[2]:
            self.publish_end = max(self.publish_end or now[2], now[2]) if now[0] else self.publish_end
            self.live_end = max(self.live_end or now[2], now[2]) if now[1] else self.live_end

    def change(self, plan: int) -> dict[str, Any]:
        names = ("events.publish_end", "events.live_end")
        counted = {"events.publish": self.published, "events.live": self.live}
        later = {name: end for name, end in zip(names, (self.publish_end, self.live_end), strict=True) if end}
        done: dict[str, Any] = {"events.plan": plan}
        if self.found is not None:
            done |= zip(names, self.found, strict=True)
            later = {}
        return {"$inc": counted, "$set": done} | ({"$max": later} if later else {})


def unused(kind: Kind) -> dict[str, Any]:
    """The usage counters of a new record."""
    return {"events": dict(UNUSED)} if kind.embedded_fields else {}
