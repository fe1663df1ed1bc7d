"""Checks the usage counters of venues, organizers and terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from schemas.kind import Document, Kind
from schemas.kinds.event_representation import LINK_FIELD
from service.doctor.findings import Finding, RecordCheck
from service.doctor.scope import Scope
from service.doctor.values import are_counters
from service.migrations.recount import Counted, snapshot_time, usage_counters

NAMES = {
    "publish": "number of events",
    "publish_end": "latest end",
    "live_end": "latest end with unpublished ones",
}


async def find(scope: Scope, kind: Kind, records: Sequence[Document]) -> list[Finding]:
    """Compare counters with a count that is made later. If `as_of` is the same when they are read again after
    the change log was updated, no change was counted meanwhile: then the difference is none of a change."""
    records = [record for record in records if are_counters(record.get("events"))]
    at, ids = await snapshot_time(scope.database), [record["_id"] for record in records]
    if not ids:
        return []
    between = {"$gte": ids[0], "$lte": ids[-1]}
    counted = await usage_counters(Counted(scope.database, at), LINK_FIELD[kind.name], between, ids)
    found = []
    for record in records:
        stored, right = record["events"], counted[record["_id"]]
        wrong = [
            f"{NAMES[name]} {stored[name]}, not {right[name]}"
            for name in NAMES
            if stored[name] != right[name]
        ]
        if stored["as_of"] and stored["as_of"] > at:
            wrong.append(f"counted as of {stored['as_of'].as_datetime():%Y-%m-%d %H:%M}, in the future")
        if wrong:
            aspect = ("events", stored["as_of"])
            repair = partial(_set, scope, kind, record["_id"], stored, right)
            subject = f"{kind.name} {record['_id']}"
            found.append(
                Finding(subject, f"counters: {', '.join(wrong)}", aspect, record["_id"], repair=repair)
            )
    return found


async def _set(scope: Scope, kind: Kind, id: int, stored: Mapping[str, Any], right: Document) -> None:
    await scope.database[kind.plural].update_one({"_id": id, "events": stored}, {"$set": {"events": right}})


USAGE = RecordCheck(
    "counters",
    "the number of events of a venue, organizer or term, or its latest end, is wrong: counted again",
    find,
    lambda kind: bool(kind.embedded_fields),
)
