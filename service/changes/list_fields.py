"""The fields that lists filter and sort by, and how an update reports them to the change feed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas import EVENT
from schemas.kind import Kind
from schemas.kinds.event_representation import LINKED

ListFields = Mapping[str, Any]
"""Values of such fields by name; a missing one is unknown."""
ACCESS = ("status", "author")
PLAIN = (
    *("_id", *ACCESS, "hide_from_listings", "locked", "post_parent", "featured", "ticketed"),
    *("start_utc", "end_utc", "date_utc", "modified_utc"),
)
LINKS = {
    field: ("_id", "version", *(("status", "author", "geo_lat") if kind.is_post else ()))
    for field, kind in LINKED.items()
}
SEARCHED = ("sort", "tok")
"""Fields for titles and words: the feed reports that they have changed, but not their values."""
LIST_FIELDS = frozenset([*PLAIN, *SEARCHED, *LINKS])
"""Fields of an event that lists filter or sort by."""


def last_change_of(kind: Kind, old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The field `last_change` that an update sets: what lists depend on, before the update, and what of it
    has changed. The change stream reports changed fields only, and not their old values."""
    if not kind.is_post:  # everybody sees terms
        return {}
    was, now = (list_fields_of(one) if kind is EVENT else access_of(one) for one in (old, new))
    # The version makes the value unique: the change stream does not report a value that stays the same.
    return {"last_change": {"version": old["version"] + 1, "was": was, "now": changed(was, now)}}


def changed(was: ListFields, now: ListFields) -> dict[str, Any]:
    """The list fields that have changed."""
    return {name: value for name, value in now.items() if value != was.get(name)}


def list_fields_of(event: Mapping[str, Any]) -> dict[str, Any]:
    """The `LIST_FIELDS` of a loaded event, without those in `SEARCHED`."""
    return {name: event.get(name) for name in PLAIN} | {
        field: [{name: copy.get(name) for name in names} for copy in event.get(field) or ()]
        for field, names in LINKS.items()
    }


def access_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Extract the fields that decide who may see a record."""
    return {name: record.get(name) for name in ACCESS}
