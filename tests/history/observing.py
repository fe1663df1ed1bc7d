"""Checks every record that an answer shows against the history."""

from __future__ import annotations

from typing import Any

from tests.history.entries import revision
from tests.history.recording import History

TITLES = {
    "events": "title",
    "venues": "venue",
    "organizers": "organizer",
    "categories": "name",
    "tags": "name",
}
FIELDS = ("title", "description", "excerpt", "website")
"""Fields of an event that are updated at the same time."""


def observe(history: History, path: str, body: Any, since: int) -> None:
    """Check a record, or all records of a list or of changes."""
    plural = path.partition("?")[0].split("/")[1]
    if plural == "changes":
        for change in (change for change in body["changes"] if change["record"]):
            observe_record(history, change["kind"], change["record"], since)
        return
    for record in body.get(plural, [body]):
        observe_record(history, plural, record, since)


def observe_record(history: History, plural: str, record: dict[str, Any], since: int) -> None:
    id = record["id"]
    title = TITLES[plural]
    history.rises((plural, id, title), revision(record[title]), since)
    for name in {title, "status", "parent"} & record.keys():
        history.saw((plural, id, name), record[name], since)
    if (deleted := history.deleted.get((plural, id))) and deleted <= since:
        history.violation(f"{plural} {id}: is shown after its deletion was acknowledged")
    if plural == "events":
        observe_event(history, record, since)


def observe_event(history: History, event: dict[str, Any], since: int) -> None:
    id = event["id"]
    if id in history.chains:
        history.extends(id, event["description"], since)
    else:
        for name in FIELDS[1:]:
            history.rises(("events", id, name), revision(event[name]), since)
            history.saw(("events", id, name), event[name], since)
    for plural, copies in linked(event).items():
        for copy in copies:
            key = ("copy", id, plural, copy["id"])
            history.rises(key, revision(copy[TITLES[plural]]), since)


def linked(event: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The records that an event shows, by kind."""
    venue = event["venue"]
    venues = venue if isinstance(venue, list) else [venue]
    return {
        "venues": venues,
        "organizers": event["organizer"],
        "categories": event["categories"],
        "tags": event["tags"],
    }
