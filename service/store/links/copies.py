"""Embedded copies: events contain the fields of linked records that are needed to show them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from schemas.kind import Document, Kind
from schemas.kinds.event_representation import LINK_FIELD, LINKED, copy_of
from service.changes.link_states import Link


def new_version(fields: Document, now: datetime) -> Document:
    """An update that sets fields, raises the version, and never sets the time of change back, since clocks of
    processes differ. A record may have changed before within the same second: it has no time of its own."""
    return {
        "$set": fields | {"has_own_time": False},
        "$max": {"modified_utc": now},
        "$inc": {"version": 1},
    }


class CopyUpdate(NamedTuple):
    """An update of the copies of one record, for many events."""

    query: Document
    """Matches the events that have an outdated copy."""
    change: Document
    array_filters: list[Document] | None = None
    smaller: Document | None = None
    """The change for events that would exceed the size limit: the copy has no description."""


def replacement(kind: Kind, record: Document, now: datetime) -> CopyUpdate:
    """Replace older copies of a record."""
    field, own = LINK_FIELD[kind.name], {"_id": record["_id"], "version": {"$lt": record["version"]}}

    def change(**other: Any) -> Document:
        return new_version({f"{field}.$[copy]": copy_of(kind, record) | other}, now)

    older = [{f"copy.{name}": value for name, value in own.items()}]
    return CopyUpdate({field: {"$elemMatch": own}}, change(), older, change(description=None))


def removal(kind: Kind, id: int, now: datetime) -> CopyUpdate:
    """Remove the copies of a record that was deleted."""
    field = LINK_FIELD[kind.name]
    return CopyUpdate({f"{field}._id": id}, {"$pull": {field: {"_id": id}}} | new_version({}, now))


def outdated_copies(
    events: Iterable[Mapping[str, Any]], records: Mapping[Link, Document]
) -> dict[Link, list[int]]:
    """The links to records that were deleted, or have another version now than the embedded one, with the ids
    of the events."""
    found: defaultdict[Link, list[int]] = defaultdict(list)
    for event in events:
        for field, copies in ((name, event.get(name) or ()) for name in LINKED):
            for copy in copies:
                link = (field, copy["_id"])
                # Another program may have written a copy without a version, or with an id that is no number.
                is_current = records.get(link, {}).get("version") == copy.get("version")
                if not is_current and isinstance(copy["_id"], int):
                    found[link].append(event["_id"])
    return found
