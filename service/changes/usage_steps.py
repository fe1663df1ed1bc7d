"""Usage steps: how a write to an event changes the usage counters of the records that it links to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from schemas.kinds.event_representation import LINKED
from schemas.values.dates import EPOCH

Use = tuple[str, int]
"""A link field of events, and the id of a record linked there."""


class State(NamedTuple):
    """How an event counts for a linked record: `publish_end` is its end if it is public, `live_end` its end
    if it is not in the trash; otherwise None."""

    publish_end: datetime | None = None
    live_end: datetime | None = None
    is_linked: bool = False


Step = tuple[State, State]
"""The state before and after a write."""


def uses_of(event: Mapping[str, Any]) -> frozenset[Use]:
    """Every record that an event links to; another program may have written ids that are not numbers."""
    return frozenset(
        (field, copy["_id"])
        for field in LINKED
        for copy in event.get(field) or ()
        if isinstance(copy["_id"], int)
    )


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
    end = event["end_utc"]
    states = {True: state(end if isinstance(end, datetime) else EPOCH), False: state(EPOCH)}
    return {(field, id): states[LINKED[field].is_post] for field, id in uses_of(event)}


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
