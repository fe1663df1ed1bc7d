"""What stored values look like."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeGuard

from bson import Timestamp

from schemas.kinds.event_representation import LINKED

CLOCK_ERROR = timedelta(hours=1)
"""By how much the clocks of members of a replica set may differ."""
COUNTERS = {"publish", "publish_end", "live_end", "as_of"}


def is_number(value: Any, least: int = 0) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def is_time(value: Any) -> bool:
    return isinstance(value, datetime)


def is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def is_past(value: Any) -> bool:
    return isinstance(value, datetime) and value <= datetime.now(UTC).replace(tzinfo=None) + timedelta(days=1)


def is_slug(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[a-z0-9_-]+", value) is not None


def or_none(is_valid: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or is_valid(value)


def is_status(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9_-]{1,40}", value) is not None


def is_image(value: Any) -> bool:
    if not isinstance(value, dict) or value.keys() != {"id", "url"}:
        return False
    return or_none(is_number)(value["id"]) and or_none(is_text)(value["url"])


def is_hash(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("$argon2")


def is_change(value: Any) -> bool:
    """Whether this is what an update has told other processes, which evidence is taken from."""
    if not isinstance(value, dict) or not is_number(value.get("version")):
        return False
    states = [value.get("was"), value.get("now")]
    return all(isinstance(one, dict) and all(map(are_copies, map(one.get, LINKED))) for one in states)


def are_copies(value: Any) -> bool:
    """Whether these are the copies in a field of an event, if it is told."""
    is_list = isinstance(value, list)
    return value is None or (
        is_list and all(isinstance(one, dict) and is_number(one.get("_id")) for one in value)
    )


def are_counters(value: Any) -> bool:
    """Whether these are usage counters, in any state."""
    if not isinstance(value, dict) or not value.keys() >= COUNTERS:
        return False
    ends = (value["publish_end"], value["live_end"])
    is_counted = value["as_of"] is None or isinstance(value["as_of"], Timestamp)
    return is_number(value["publish"]) and all(end is None or is_time(end) for end in ends) and is_counted
