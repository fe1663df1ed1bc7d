"""Checks what posts have: the trash, publication dates, parent events; and ids that several kinds share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from schemas import KINDS
from schemas.kind import Document, Kind
from schemas.kinds.event import EVENT
from schemas.values.slugs import TRASHED_SUFFIX
from service.doctor.evidence import last_fact
from service.doctor.findings import REMOVED, Finding, RecordCheck
from service.doctor.mending import mend
from service.doctor.scope import Scope
from service.doctor.values import CLOCK_ERROR

TRASHED_SLUG = re.compile(rf"{TRASHED_SUFFIX}(-\d+)?$")


async def find_trash(scope: Scope, kind: Kind, records: Sequence[Document]) -> list[Finding]:
    return [finding for record in records if (finding := _wrong_trash(scope, kind, record))]


def _wrong_trash(scope: Scope, kind: Kind, record: Document) -> Finding | None:
    """A record that was moved to the trash has its former status, and frees its slug. One that was created
    there has neither."""
    told = last_fact(record, "status")
    former, is_trashed = record.get("trashed_from"), record["status"] == "trash"
    was_moved = former is not None or told not in (None, "trash") or "trashed_from" in record
    is_former = isinstance(former, str) and former != "trash"
    has_suffix = TRASHED_SLUG.search(record["slug"]) is not None
    subject, id = f"{kind.name} {record['_id']}", record["_id"]
    if not is_trashed and former is not None:
        problem = f"it is not in the trash, but trashed_from is {former!r:.40}"
        slug = TRASHED_SLUG.sub("", record["slug"])
        repair = partial(_rename, scope, kind, record, slug, {"trashed_from": REMOVED})
        return Finding(subject, problem, "trash", id, repair=repair)
    if not is_trashed or not was_moved or (has_suffix and is_former):
        return None
    before = (record.get("last_change") or {}).get("was", {}).get("status")
    known = next((one for one in (told, before) if one not in (None, "trash")), "draft")
    change = {} if is_former else {"trashed_from": known}
    slug = record["slug"] if has_suffix else record["slug"] + TRASHED_SUFFIX
    problem = f"it is in the trash, but its slug is {record['slug']!r} and trashed_from is {former!r:.40}"
    return Finding(subject, problem, "trash", id, repair=partial(_rename, scope, kind, record, slug, change))


async def _rename(scope: Scope, kind: Kind, record: Document, slug: str, change: Document) -> None:
    if slug != record["slug"]:
        change = change | {"slug": await scope.slugs.free(kind.plural, slug, record["_id"])}
    await mend(scope, kind, record, change)


async def find_publication(scope: Scope, kind: Kind, records: Sequence[Document]) -> list[Finding]:
    late = scope.site.now() + CLOCK_ERROR
    return [
        Finding(
            f"{kind.name} {record['_id']}",
            f"it is published, but its publication date {record['date_utc']} is in the future",
            "publication",
            record["_id"],
            {"status": "future"},
        )
        for record in records
        if record["status"] == "publish" and record["date_utc"] > late
    ]


async def find_parents(scope: Scope, kind: Kind, records: Sequence[Document]) -> list[Finding]:
    """Events are never deleted, only moved to the trash: a parent exists for ever."""
    wanted = {record["post_parent"] for record in records}
    rows = scope.collection(kind.plural).find({"_id": {"$in": list(wanted)}}, {"_id": 1})
    existing = {0} | {row["_id"] async for row in rows}
    return [
        Finding(
            f"event {record['_id']}",
            f"post_parent {record['post_parent']} is not another event",
            "post_parent",
            record["_id"],
            {"post_parent": 0},
        )
        for record in records
        if record["post_parent"] not in existing or record["post_parent"] == record["_id"]
    ]


async def find_shared_ids(scope: Scope, kind: Kind, records: Sequence[Document]) -> list[Finding]:
    """An id belongs to one record of all kinds with the same id sequence."""
    ids = {"_id": {"$in": [record["_id"] for record in records]}}
    advice = "create one of the two again, with another ID, and remove it from the database"
    return [
        Finding(
            f"{kind.name} {row['_id']}",
            f"there is {other.name} {row['_id']}, too",
            "id",
            row["_id"],
            advice=advice,
        )
        for other in KINDS[: KINDS.index(kind)]
        if other.id_space == kind.id_space
        async for row in scope.collection(other.plural).find(ids, {"_id": 1})
    ]


def is_post(kind: Kind) -> bool:
    return kind.is_post


TRASH = RecordCheck(
    "trash",
    "a record in the trash still occupies its slug, or a record that is not in the trash has data left from "
    "it: corrected",
    find_trash,
    is_post,
)
PUBLICATION = RecordCheck(
    "publication",
    "a record is published before its publication date: scheduled again",
    find_publication,
    is_post,
)
PARENTS = RecordCheck(
    "parents",
    "the parent of an event does not exist: the event gets no parent",
    find_parents,
    lambda kind: kind is EVENT,
)
SHARED_IDS = RecordCheck(
    "shared IDs", "two records of different kinds have the same ID: only reported", find_shared_ids
)
