"""How an event counts for each record that it links to, and how a write to the event changes that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from schemas.kinds.event_representation import LINKED
from schemas.values.dates import EPOCH

Link = tuple[str, int]
"""A link field of events, and the id of the record linked there."""


class LinkState(NamedTuple):
    """How an event counts for a linked record: `publish_end` is its end if it is public, `live_end` its end
    if it is not in the trash; otherwise None."""

    publish_end: datetime | None = None
    live_end: datetime | None = None
    is_linked: bool = False


Transition = tuple[LinkState, LinkState]
"""The state before and after a write."""


def links_of(event: Mapping[str, Any]) -> frozenset[Link]:
    """Every record that an event links to; another program may have written ids that are not numbers."""
    return frozenset(
        (field, copy["_id"])
        for field in LINKED
        for copy in event.get(field) or ()
        if isinstance(copy["_id"], int)
    )


def transitions_of(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> dict[Link, Transition]:
    """The transition of each link that an event had before or after a write, unless its state is the same."""
    before, after = _states(old), _states(new)
    pairs = {link: (before.get(link, LinkState()), after.get(link, LinkState())) for link in before | after}
    return {link: (was, now) for link, (was, now) in pairs.items() if was != now}


def _states(event: Mapping[str, Any] | None) -> dict[Link, LinkState]:
    """The state of each record that an event links to. Links of a protected event are not public."""
    if event is None:
        return {}
    is_public, is_live = event["status"] == "publish" and not event["locked"], event["status"] != "trash"

    def state(end: datetime) -> LinkState:
        return LinkState(end if is_public else None, end if is_live else None, is_linked=True)

    # Terms have no latest end: if only the end of an event moves, there is nothing to count in them.
    end = event["end_utc"]
    states = {True: state(end if isinstance(end, datetime) else EPOCH), False: state(EPOCH)}
    return {(field, id): states[LINKED[field].is_post] for field, id in links_of(event)}


def after_transitions(
    counters: Mapping[str, Any], transitions: Iterable[Transition]
) -> tuple[dict[str, Any], bool]:
    """The counters after transitions of links, and whether the latest ends are known: the event that had the
    latest one may have been removed."""
    counted, are_ends_known = dict(counters), True
    for was, now in transitions:
        counted["publish"] += bool(now.publish_end) - bool(was.publish_end)
        for name in ("publish_end", "live_end"):
            before, after, latest = getattr(was, name), getattr(now, name), counted[name]
            if before and (after is None or after < before) and (latest is None or before >= latest):
                are_ends_known = False
            counted[name] = max(filter(None, (latest, after)), default=None)
    return counted, are_ends_known
